import NighCore
import NighSystem

/// Moves bytes between one side of a transfer and its stream, without waiting.
package final class TransferSteps {
    /// The condition to wait for before the next step.
    package enum Pause {
        /// Nothing.
        case none
        /// Bytes that can be read, or with `room` also room to write.
        case activity(bytes: Bool, room: Bool)
        /// Something to read in a pipe that is sent, or bytes that can be read.
        case input(AwaitedInput)
        /// Some time, because the disk is full or this side has paused.
        case time
        case over(TransferEnding)
    }

    private let stream: ByteStream
    private let side: any TransferSide
    /// The bytes that the side wants to send. They stay in place until the side works again.
    private var unsent = UnsafeRawBufferPointer(start: nil, count: 0)
    private var canWrite = true
    /// When this side has sent all; nil before that.
    private var finishedAt: Moment?

    /// The bytes that are read before the next piece of work.
    private static let readLimit = 512 << 10
    /// How long the other side may take to end its direction too, once all is sent. It is longer than the time without
    /// a link after which a conversation ends.
    package static let leavingTime = Moment.Span.seconds(15)

    package init(_ side: any TransferSide, on stream: ByteStream) {
        self.side = side
        self.stream = stream
    }

    /// Reads the bytes that have come, and writes or does the next piece of work.
    package func step(at now: Moment) -> Pause {
        let hasRead = read()
        if let finishedAt, now - finishedAt >= Self.leavingTime { side.leave() }
        if !canWrite { unsent = UnsafeRawBufferPointer(start: nil, count: 0) }
        if !unsent.isEmpty {
            do throws(NighError) {
                let count = try stream.tryWrite(unsent)
                unsent = UnsafeRawBufferPointer(rebasing: unsent[count...])
            } catch {
                // The other side reads no more, and gives the reason in its own direction.
                canWrite = false
                return .none
            }
            guard !unsent.isEmpty else { return .none }
            // A transfer that has ended does not wait for room for its last records.
            if side.hasEnded { return close(isAllSent: false) }
            return hasRead ? .none : .activity(bytes: side.takesBytes, room: true)
        }
        switch side.work() {
        case .send(let bytes): unsent = bytes
        case .again: break
        case .wait: if !hasRead { return side.takesBytes ? .activity(bytes: true, room: false) : .time }
        case .waitForInput(let input): if !hasRead { return .input(input) }
        case .waitForRoom: return .time
        case .finish:
            stream.finish()
            finishedAt = now
        case .over: return close(isAllSent: true)
        }
        return .none
    }

    /// Gives the side the bytes that have come. Returns whether there were any.
    private func read() -> Bool {
        var count = 0
        // A side that takes no bytes now, because its disk is full or somebody has paused it, has to know of the end,
        // too.
        if !side.takesBytes, !side.hasEnded, let failure = stream.failure ?? writingFailure {
            side.receiveEnd(failure)
            return true
        }
        while side.takesBytes, !side.hasEnded, count < Self.readLimit {
            switch stream.poll() {
            case .bytes(let bytes):
                count += bytes.count
                bytes.withUnsafeBytes { side.receive($0) }
            case .nothing: return count > 0
            case .end:
                side.receiveEnd(nil)
                return true
            case .failed(let error):
                side.receiveEnd(error)
                return true
            }
        }
        return count > 0
    }

    /// The reason why the other side reads no more. A side that has stopped gives it only behind the bytes that it has
    /// sent.
    private var writingFailure: NighError? {
        do throws(NighError) {
            _ = try stream.tryWrite(UnsafeRawBufferPointer(start: nil, count: 0))
            return nil
        } catch {
            return error
        }
    }

    /// Ends the stream as the transfer has ended.
    private func close(isAllSent: Bool) -> Pause {
        var work = side.work()
        // The records that are left do not fit. The end of the stream carries the reason.
        while case .send = work { work = side.work() }
        guard case .over(let ending) = work else { return .none }
        switch ending {
        case .complete, .lost: stream.finish()
        case .stopped(let fault), .stoppedHere(let fault):
            if isAllSent { stream.finish() } else { stream.cancelWriting(because: fault.explanation) }
            stream.cancelReading(because: fault.explanation)
        }
        return .over(ending)
    }
}

/// Drives one side of a transfer in one task, on a thread of its own where the disk may block, and carries out the
/// program's commands.
struct TransferRun {
    let stream: ByteStream
    let side: any TransferSide
    let transfer: FileTransfer
    let queue: FileQueue

    /// The time after which a full disk is tried again and a side that has paused looks at its stream, in seconds.
    private static let roomInterval = 1.0
    /// How often a transfer that is under way looks at the time, in seconds.
    private static let tickInterval = 1.0
    /// How often a receiver looks, in seconds: another program may wait that long to open a file that is being
    /// received.
    private static let admissionInterval = 0.2

    /// Runs to the end. Calls `onTurn` after each step.
    func run(onTurn: () -> Void = {}) async -> TransferEnding {
        let steps = TransferSteps(side, on: stream)
        let interval = transfer.isIncoming ? Self.admissionInterval : Self.tickInterval
        let ticks = queue.every(interval) { [transfer] in
            if transfer.isUnderway { transfer.order(.tick) }
        }
        defer { ticks.cancel() }
        while true {
            for command in transfer.takeCommands() { obey(command) }
            let pause = steps.step(at: LoopThread.now)
            let hasMoved = if case .none = pause { true } else { false }
            transfer.note(
                side.progress, isUnderway: side.isUnderway, isReconnecting: stream.isReconnecting,
                hasMoved: hasMoved, at: LoopThread.now)
            onTurn()
            switch pause {
            case .none: break
            case .activity(let bytes, let room): await stream.waitForActivity(bytes: bytes, room: room)
            case .input(let input):
                let watch = InputWatch(input) { [stream] in stream.wake() }
                await stream.waitForActivity(bytes: side.takesBytes, room: false)
                watch.cancel()
            case .time:
                queue.after(Self.roomInterval) { [stream] in stream.wake() }
                await stream.waitForActivity(bytes: false, room: false)
            case .over(let ending): return ending
            }
        }
    }

    private func obey(_ command: FileTransfer.Command) {
        switch command {
        case .accept(let makeStore, let mostBytes, let onResult):
            guard let incoming = side as? IncomingFiles else { return }
            if let onResult {
                incoming.onConclusion = { [transfer] in onResult(transfer.result(of: $0, $1, nil)) }
            }
            do throws(FileFailure) {
                incoming.accept(into: try makeStore(), atMost: mostBytes)
            } catch {
                side.stop(error.fault)
            }
        case .tick: (side as? IncomingFiles)?.admitOtherPrograms()
        case .pause(let reason): side.setPaused(true, because: reason)
        case .resume: side.setPaused(false, because: "")
        case .stop(let fault): side.stop(fault)
        case .stopUnlisted:
            guard let incoming = side as? IncomingFiles, incoming.isListing else { return }
            side.stop(FileFault(.cancelled, "the offer did not come whole in time"))
        }
    }
}
