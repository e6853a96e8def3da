import NighCore

/// A pipe that another peer carries: one end of a stream to that peer.
///
/// Written bytes wait here until the stream has room for them. Bytes that the stream has taken count as sent, because
/// the conversation delivers them.
///
/// Loop only.
final class RelayPipe: Pipe {
    /// How many bytes may wait here before the pipe counts as backed up. The stream has a window of its own.
    static let highWaterMark = 64 << 10
    /// The most bytes delivered in one turn, so that others get theirs.
    static let turnLimit = 256 << 10
    /// How long a pipe closed with `.afterWriting` waits until the stream has taken all written bytes.
    static let lingerTime = Moment.Span.seconds(10)
    /// The reason that the other side gets when this side closes the pipe.
    static let closedReason = "the pipe was closed"

    private enum Phase {
        case open
        /// Closed on this side. Written bytes wait for the stream to take them.
        case lingering
        case done
    }

    let address: RelayAddress
    private let stream: ByteStream
    private let loop: any EventLoop
    /// Called once the pipe is over.
    private let whenDone: (RelayPipe) -> Void

    private var phase = Phase.open
    /// Whether it is open.
    var isOpen: Bool { phase == .open }
    private var handler: (any PipeHandler)?
    private var isReading = false
    private var hasEnded = false
    /// Bytes that came before the pipe was made.
    private var early: ByteSlice
    private var waiting = ByteQueue()
    /// Why the stream takes no more bytes.
    private var writingFailure: NighError?
    /// Why the pipe is over although the stream may not be.
    private var breakReason: NighError.Cause?
    /// Whether the handler waits for `pipeBecameWritable`, because `writableBytes` was zero or less.
    private var isHeldUp = false
    private var isTurnDue = false
    private var lingerTimer: LoopTimer?
    private var bytesReceived = 0
    private var bytesWritten = 0

    init(
        _ stream: ByteStream, at address: RelayAddress, early: ByteSlice = ByteSlice([]),
        on loop: any EventLoop, whenDone: @escaping (RelayPipe) -> Void
    ) {
        self.stream = stream
        self.address = address
        self.early = early
        self.loop = loop
        self.whenDone = whenDone
    }

    var localAddress: TransportAddress? { nil }
    var remoteAddress: TransportAddress? { address.transportAddress }
    var writableBytes: Int { Self.highWaterMark - waiting.byteCount }

    var counters: PipeCounters {
        var counters = PipeCounters()
        counters.bytesReceived = bytesReceived
        counters.bytesWritten = bytesWritten
        counters.bytesWaiting = waiting.byteCount
        return counters
    }

    // MARK: Calls of the session

    func start(handler: any PipeHandler) {
        loop.checkIsolated()
        guard phase == .open else { return }
        self.handler = handler
        isReading = true
        takeTurnSoon()
    }

    func write(_ queue: inout ByteQueue) {
        loop.checkIsolated()
        guard phase == .open, writingFailure == nil, breakReason == nil else { return queue.removeAll() }
        bytesWritten += queue.byteCount
        waiting.append(contentsOf: &queue)
        pump()
        if writableBytes <= 0 { isHeldUp = true }
        if writingFailure == nil { watch() } else { takeTurnSoon() }
    }

    func pauseReading() {
        loop.checkIsolated()
        isReading = false
    }

    func resumeReading() {
        loop.checkIsolated()
        guard phase == .open, handler != nil, !isReading else { return }
        isReading = true
        takeTurnSoon()
    }

    func close(_ mode: PipeCloseMode) {
        loop.checkIsolated()
        guard phase == .open else { return }
        switch mode {
        case .now: finishNow()
        case .afterWriting:
            phase = .lingering
            stream.cancelReading(because: Self.closedReason)
            lingerTimer = loop.schedule(at: loop.now + Self.lingerTime) { [self] in
                lingerTimer = nil
                drained()
            }
            takeTurnSoon()
        }
    }

    // MARK: Calls of the transport

    /// Ends the pipe at once, drops waiting bytes, and reports nothing to the handler.
    func finishNow() {
        guard phase != .done else { return }
        stream.cancel(because: Self.closedReason)
        finish()
    }

    /// Ends an open pipe for this reason, and reports it to the handler in a later turn.
    func breakOff(_ reason: NighError.Cause) {
        guard phase != .done, breakReason == nil else { return }
        breakReason = reason
        takeTurnSoon()
    }

    // MARK: Turns

    private func takeTurnSoon() {
        guard !isTurnDue else { return }
        isTurnDue = true
        loop.later { [self] in
            isTurnDue = false
            takeTurn()
        }
    }

    private func takeTurn() {
        pump()
        switch phase {
        case .done: return
        case .lingering:
            if waiting.isEmpty { return drained() }
        case .open:
            guard handler != nil else { return }
            if let breakReason { return broken(breakReason) }
            reportRoom()
            read()
            reportEnd()
        }
        watch()
    }

    /// Writes the waiting bytes to the stream, as far as it has room.
    private func pump() {
        guard phase != .done, writingFailure == nil, breakReason == nil else { return waiting.removeAll() }
        do throws(NighError) {
            // An empty write shows whether the other end still reads.
            if waiting.isEmpty { _ = try stream.tryWrite(ByteSlice([])) }
            while let first = waiting.first {
                let count = try stream.tryWrite(first)
                waiting.drop(count)
                if count < first.count { return }
            }
        } catch {
            writingFailure = error
            waiting.removeAll()
        }
    }

    private func reportRoom() {
        guard isHeldUp, writingFailure == nil, waiting.byteCount <= Self.highWaterMark / 2 else { return }
        isHeldUp = false
        handler?.pipeBecameWritable(self)
    }

    private func read() {
        var left = Self.turnLimit
        while phase == .open, breakReason == nil, isReading, !hasEnded, let handler {
            guard left > 0 else { return takeTurnSoon() }
            switch next() {
            case .bytes(let bytes):
                left -= bytes.count
                bytesReceived += bytes.count
                handler.pipe(self, received: bytes)
            case .end:
                hasEnded = true
                // A handler that does not close the pipe now learns in another turn whether the other end has.
                takeTurnSoon()
                return handler.pipeEnded(self)
            case .nothing, .failed: return
            }
        }
    }

    private func next() -> ByteStream.Reading {
        guard early.isEmpty else {
            defer { early = ByteSlice([]) }
            return .bytes(early)
        }
        return stream.poll()
    }

    /// Reports that the pipe is over if nothing more can pass. Received bytes are read first, unless reading is paused
    /// and the stream has broken.
    private func reportEnd() {
        guard phase == .open, !isTurnDue else { return }
        if let failure = stream.failure { return broken(Self.cause(of: failure)) }
        guard let writingFailure else { return }
        guard case .streamCancelled = writingFailure.cause else { return broken(.linkLost) }
        if hasEnded { closed(nil) }
    }

    /// Returns the cause to report when the stream has failed. The end of a conversation with the carrier is only the
    /// loss of a link here.
    private static func cause(of failure: NighError) -> NighError.Cause {
        guard case .streamCancelled(let reason) = failure.cause, reason != closedReason else {
            return .linkLost
        }
        return .streamCancelled(reason)
    }

    private func broken(_ cause: NighError.Cause) {
        closed(NighError(.conversing, cause, peer: address.peer.short, transport: RelayAddress.scheme))
    }

    private func closed(_ error: NighError?) {
        let receiver = handler
        stream.cancel(because: Self.closedReason)
        finish()
        receiver?.pipeClosed(self, error: error)
    }

    /// Ends a pipe that was closed here. Bytes that the stream has taken still arrive; waiting bytes are dropped.
    private func drained() {
        guard phase == .lingering else { return }
        let receiver = handler
        if waiting.isEmpty { stream.finish() }
        stream.cancel(because: Self.closedReason)
        finish()
        receiver?.pipeDrained(self)
    }

    private func finish() {
        phase = .done
        handler = nil
        isReading = false
        waiting.removeAll()
        early = ByteSlice([])
        if let lingerTimer { loop.cancel(lingerTimer) }
        lingerTimer = nil
        // The stream retains its callback, and with it this pipe.
        stream.notify(bytes: false, room: false, on: loop) {}
        whenDone(self)
    }

    /// Takes another turn as soon as the stream has something for it.
    private func watch() {
        guard phase != .done else { return }
        let bytes = phase == .open && isReading && !hasEnded
        stream.notify(bytes: bytes, room: !waiting.isEmpty, on: loop) { [self] in takeTurnSoon() }
    }
}
