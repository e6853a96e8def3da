import Glibc
import Synchronization

/// Messages of one peer on their way to the program, as they came: one piece of memory, with one reference for all of
/// them. It is cut into messages only when they are read.
struct UnreadRun: Sendable {
    /// The port to notify when the messages are read.
    let port: PeerPort
    /// Frames of whole messages, one after another. If there is an `origin`, the payload of one message instead.
    var bytes: ByteSlice
    /// The origin of the one message; nil for frames, which contain it.
    let origin: MessageOrigin?
    /// How many bytes at the beginning of the one message are not for the program.
    var hiddenByteCount = 0

    /// The number of bytes that it counts until the program reads it.
    var cost: Int { origin == nil ? bytes.count : SendLane.cost(of: bytes.count) }
}

/// The messages of a session that its program has not read.
///
/// The loop appends runs. The reader has one run open at a time and takes its messages one by one. The last message
/// takes over the reference to the memory, which is freed as soon as the program releases that message. Read messages
/// are reported to the loop run by run, and within a long run in steps far smaller than the window.
///
/// `@unchecked Sendable`: properties marked "reader only" are touched only by the thread that has set `isReading`. A
/// mutex is not needed because there is one reader, and would cost as much as the message. Two readers that break this
/// rule wait for each other for a few instructions.
final class MessageInbox: @unchecked Sendable {
    private let runs = Inbox<UnreadRun>()
    private let portNotifier: PortNotifier
    /// How many bytes are read before the loop is notified.
    private let notifyAfter: Int
    /// How many bytes of a run are read before they are counted.
    private let step: Int

    private let isReading = Atomic<Bool>(false)
    /// Whether the open run has something left to read, or the next run is being looked for. A reader that finds the
    /// queue empty because of that sees this set: it is set before the run is taken out, with the queue's lock in
    /// between.
    private let isOpen = Atomic<Bool>(false)

    /// The run that the reader has open, and how much of it is read.
    private struct OpenRun {
        var chunk: Chunk?
        var base = UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
        var peer: PeerID
        var port: PeerPort?
        /// The position in the chunk at which the next frame begins.
        var position = 0
        /// A frame that ends at this position or after it is left to `pollAtMark`: something has to be counted, or the
        /// run is over.
        var mark = 0
        var end = 0
        /// The position up to which reading was counted.
        var counted = 0
    }

    /// Reader only. No other code is called while it is touched, so it needs no run-time check for exclusive access.
    @exclusivity(unchecked) private var run: OpenRun

    /// - Parameter owner: the session's own PeerID.
    init(receiveWindow: Int, owner: PeerID, portNotifier: PortNotifier) {
        self.portNotifier = portNotifier
        notifyAfter = receiveWindow / 4
        step = receiveWindow / 16
        run = OpenRun(peer: owner)
    }

    // MARK: The loop

    /// Called after messages were appended, for a program that polls. Loop only.
    var onAppend: (@Sendable () -> Void)? {
        get { appending.notify }
        set { appending.notify = newValue }
    }

    /// The loop's side of the queue.
    private struct Appending {
        var notify: (@Sendable () -> Void)?
        /// The number of runs that waited when the last one was appended.
        var waiting = 0
        /// The chunk that runs are copied to while the reader is behind.
        var tail: Chunk?
    }

    @exclusivity(unchecked) private var appending = Appending()

    /// A reader that keeps up seldom has more runs before it.
    private static let mostLooseRuns = 16
    /// While the reader is behind, a run is copied if its chunk has more than this many times its size. Otherwise a
    /// peer could make each small message keep a large chunk.
    private static let mostSpace = 4
    private static let tailSize = 4 << 10

    /// Appends a run. If nobody reads any more, it counts as read.
    func append(_ run: consuming UnreadRun) {
        if appending.waiting >= Self.mostLooseRuns {
            run.bytes = compact(run.bytes)
        } else {
            appending.tail = nil
        }
        let (port, cost) = (run.port, run.cost)
        guard let waiting = runs.append(run) else { return count(cost, of: port) }
        appending.waiting = waiting
        appending.notify?()
    }

    /// Moves the waiting messages of one peer to another inbox. The run that the reader has open stays. Loop only.
    func moveMessages(of port: PeerPort, to inbox: MessageInbox) {
        for run in runs.takeAll(where: { $0.port === port }) { inbox.append(run) }
    }

    private func compact(_ bytes: ByteSlice) -> ByteSlice {
        guard bytes.count < bytes.chunk.capacity / Self.mostSpace else { return bytes }
        if (appending.tail?.room ?? 0) < bytes.count {
            appending.tail = Chunk(capacity: max(bytes.count, Self.tailSize))
        }
        guard let tail = appending.tail else { return bytes }
        let start = tail.filled
        bytes.withUnsafeBytes { tail.append($0) }
        return tail.slice(from: start)
    }

    /// Counts unread messages as read, so that they do not take the room of the peer's next conversation.
    deinit {
        if let port = run.port { count(run.end &- run.counted, of: port) }
        while let run = runs.poll() { count(run.cost, of: run.port) }
    }

    /// Ends the inbox. Messages that wait can still be read.
    func finish() { runs.finish() }

    // MARK: The reader

    /// Whether a task waits for a message.
    var hasReader: Bool { runs.hasReader }

    /// Returns the next message without waiting, or nil if there is none now.
    @inline(__always)
    func poll() -> Message? {
        beginReading()
        if run.position < run.mark {
            let header = FrameHeader(readingFrom: run.base + run.position)
            let start = run.position &+ FrameHeader.byteCount
            let next = start &+ header.payloadLength
            if next < run.mark {
                run.position = next
                let message = Message(
                    origin: MessageOrigin(peer: run.peer, frameType: header.type),
                    payload: ByteSlice(chunk: run.chunk.unsafelyUnwrapped, start: start, end: next))
                endReading()
                return message
            }
        }
        return pollAtMark()
    }

    /// Waits for the next message after `poll` had none. Returns nil if the inbox is finished and empty, or if the task
    /// is cancelled.
    @inline(__always)
    nonisolated(nonsending) func waitForNext() async -> Message? {
        while await runs.wait(unless: { isOpen.load(ordering: .relaxed) }) {
            if let message = poll() { return message }
        }
        return nil
    }

    /// Returns the message at the mark of the open run, or the first message of the next run.
    @inline(never)
    private func pollAtMark() -> Message? {
        if run.position == run.end {
            isOpen.store(true, ordering: .relaxed)
            guard let next = runs.poll() else {
                isOpen.store(false, ordering: .relaxed)
                endReading()
                return nil
            }
            if let origin = next.origin {
                isOpen.store(false, ordering: .relaxed)
                endReading()
                count(next.cost, of: next.port)
                return Message(origin: origin, payload: next.bytes[next.hiddenByteCount..<next.bytes.count])
            }
            open(next)
        }
        return takeFromOpenRun()
    }

    private func open(_ next: UnreadRun) {
        run = OpenRun(
            chunk: next.bytes.chunk, base: UnsafeRawPointer(next.bytes.chunk.base), peer: next.port.peer,
            port: next.port, position: next.bytes.start, mark: min(next.bytes.end, next.bytes.start &+ step),
            end: next.bytes.end, counted: next.bytes.start)
    }

    /// Takes the next message out of the open run, counts the bytes read if that is due, and ends reading.
    private func takeFromOpenRun() -> Message? {
        let header = FrameHeader(readingFrom: run.base + run.position)
        let origin = MessageOrigin(peer: run.peer, frameType: header.type)
        let start = run.position &+ FrameHeader.byteCount
        run.position = start &+ header.payloadLength
        let payload = ByteSlice(chunk: run.chunk.unsafelyUnwrapped, start: start, end: run.position)
        guard run.position >= run.mark else {
            endReading()
            return Message(origin: origin, payload: payload)
        }
        let readPort = run.port.unsafelyUnwrapped
        let cost = run.position &- run.counted
        if run.position == run.end {
            run.chunk = nil
            run.port = nil
            isOpen.store(false, ordering: .relaxed)
        } else {
            run.counted = run.position
            run.mark = min(run.end, run.position &+ step)
        }
        endReading()
        count(cost, of: readPort)
        return Message(origin: origin, payload: payload)
    }

    private func count(_ bytes: Int, of port: PeerPort) {
        if port.didRead(bytes, notifyAfter: notifyAfter) { portNotifier.add(port) }
    }

    @inline(__always)
    private func beginReading() {
        while isReading.exchange(true, ordering: .acquiring) { sched_yield() }
    }

    @inline(__always)
    private func endReading() { isReading.store(false, ordering: .releasing) }
}
