import NighCore

/// One side of the calls on a stream.
protocol CallSide: AnyObject {
    /// Handles a record of the other side, of `count` bytes.
    func receive(_ record: CallRecord, count: Int) throws(WireError)

    /// The next record to send; nil if there is none now.
    func nextFrame() -> ByteSlice?

    /// When `deadlinePassed` is to be called; nil if never.
    var nextDeadline: Moment? { get }
    func deadlinePassed()

    /// The stream is over, for this reason. Nothing is called afterwards.
    func streamEnded(_ reason: NighError)
}

/// Reads and writes the records of a stream for calls, on the loop.
final class CallStream {
    private let stream: ByteStream
    private let loop: any EventLoop
    private let stage: NighError.Stage
    /// The most bytes of a record.
    private let limit: Int
    private weak var side: (any CallSide)?
    private var parser = StreamMessageParser()
    /// The end of the record that the stream has taken in part.
    private var unwritten: ByteSlice?
    private var timer: (timer: LoopTimer, moment: Moment)?
    private var isOver = false

    init(
        _ stream: ByteStream, on loop: any EventLoop, messageLimit: Int, stage: NighError.Stage,
        side: any CallSide
    ) {
        self.stage = stage
        self.stream = stream
        self.loop = loop
        limit = messageLimit + CallRecord.longestHeader
        self.side = side
    }

    /// Reads the bytes that have come, writes as far as there is room, and goes on when there is more of either.
    func proceed() {
        guard !isOver else { return }
        do throws(NighError) {
            let hasEnded = try read()
            try write()
            if hasEnded { return end(NighError(stage, .streamCancelled("the peer calls no more"))) }
        } catch {
            return end(error)
        }
        stream.notify(bytes: true, room: unwritten != nil, on: loop) { [weak self] in self?.proceed() }
        setTimer()
    }

    /// Returns whether the other side has written everything.
    private func read() throws(NighError) -> Bool {
        while true {
            switch stream.poll() {
            case .bytes(let bytes): parser.append(bytes)
            case .nothing: return false
            case .end: return true
            case .failed(let error): throw error
            }
            do throws(WireError) {
                while let message = try parser.next(limit: limit) {
                    if let record = try CallRecord(reading: message) {
                        try side?.receive(record, count: message.count)
                    }
                }
            } catch {
                throw NighError(.receiving, .protocolViolation(error.message), peer: stream.peerLabel)
            }
        }
    }

    private func write() throws(NighError) {
        while true {
            if unwritten == nil { unwritten = side?.nextFrame() }
            guard let bytes = unwritten else { return }
            let count = try stream.tryWrite(bytes)
            unwritten = count < bytes.count ? bytes[count..<bytes.count] : nil
            if unwritten != nil { return }
        }
    }

    private func setTimer() {
        guard let moment = side?.nextDeadline, moment < timer?.moment ?? .never else { return }
        if let timer { loop.cancel(timer.timer) }
        timer = (
            loop.schedule(at: moment) { [weak self] in
                guard let self, !isOver else { return }
                timer = nil
                side?.deadlinePassed()
                proceed()
            }, moment
        )
    }

    /// Whether everything that there was to write is written.
    var isWritten: Bool { unwritten == nil }

    /// Ends the stream in good order.
    func finish() {
        stream.finish()
        end(NighError(stage, .left))
    }

    /// Ends the stream, and gives its side the reason.
    func end(_ reason: NighError) {
        guard !isOver else { return }
        isOver = true
        if let timer { loop.cancel(timer.timer) }
        timer = nil
        let words = if case .protocolViolation(let words) = reason.cause { words } else { "" }
        stream.cancel(because: words)
        side?.streamEnded(reason)
    }
}
