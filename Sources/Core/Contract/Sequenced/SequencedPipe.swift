/// Carries the packets of pipes: a transport over a channel of packets. All calls come on the loop.
package protocol PacketChannel: AnyObject {
    /// Notes that `pipe` has something to send. The channel calls ``SequencedPipe/nextPacket()`` as soon as it can take
    /// packets, now or later.
    func hasPackets(_ pipe: SequencedPipe)

    /// Notes that all packets of a pipe that was closed have been taken. The channel calls
    /// ``SequencedPipe/confirmSent()`` in a later turn, once shutting down the transport loses none of them.
    func hasSentAll(_ pipe: SequencedPipe)

    /// Notes that `pipe` is over at this end.
    ///
    /// - Parameter abort: the packet that ends it at the other end; nil if that knows, or is told by other packets.
    func isOver(_ pipe: SequencedPipe, abort: [UInt8]?)
}

/// A pipe over a channel of packets. Both directions end at once.
///
/// Loop only.
package final class SequencedPipe: Pipe {
    private enum Phase {
        case open
        /// Closed at this end. Written bytes are still to be sent.
        case lingering
        case over
    }

    /// How many bytes may wait before the pipe counts as backed up.
    private static let highWaterMark = 64 << 10
    /// The time without progress after which a pipe that was closed drops its unsent bytes.
    private static let lingerTime = Moment.Span.seconds(10)

    /// The number that the channel has given the pipe.
    package let number: UInt64
    package let localAddress: TransportAddress?
    package let remoteAddress: TransportAddress?
    package private(set) var counters = PipeCounters()
    private let scheme: String
    private let loop: any EventLoop
    private weak var channel: (any PacketChannel)?
    private var handler: (any PipeHandler)?
    private var phase = Phase.open
    private var stream: SequencedStream
    private var isReading = false
    private var hasReportedEnd = false
    /// The error that the next turn reports, and the packet that gives the stream up at the other end.
    private var failure: (error: NighError, abort: [UInt8]?)?
    private var owesRoomNotice = false
    private var isTurnDue = false
    private var timer: (id: LoopTimer, moment: Moment)?
    private var lastProgress: Moment

    /// Creates an open pipe of the transport `scheme`.
    package init(
        _ stream: SequencedStream, number: UInt64, from local: TransportAddress?,
        to remote: TransportAddress?,
        scheme: String, on loop: any EventLoop, channel: any PacketChannel
    ) {
        self.stream = stream
        self.number = number
        localAddress = local
        remoteAddress = remote
        self.scheme = scheme
        self.loop = loop
        self.channel = channel
        lastProgress = loop.now
    }

    // MARK: Calls by the session

    package var writableBytes: Int { Self.highWaterMark - stream.waiting }

    package func start(handler: any PipeHandler) {
        loop.checkIsolated()
        precondition(self.handler == nil, "a pipe was started twice")
        guard phase == .open else { return }
        self.handler = handler
        isReading = true
        takeTurnSoon()
    }

    package func write(_ queue: inout ByteQueue) {
        loop.checkIsolated()
        guard phase == .open, failure == nil, !hasReportedEnd else { return queue.removeAll() }
        counters.bytesWritten += queue.byteCount
        stream.write(&queue)
        channel?.hasPackets(self)
        counters.bytesWaiting = stream.waiting
        if writableBytes <= 0 { owesRoomNotice = true }
    }

    package func pauseReading() {
        loop.checkIsolated()
        isReading = false
    }

    package func resumeReading() {
        loop.checkIsolated()
        guard phase == .open, handler != nil, !isReading else { return }
        isReading = true
        takeTurnSoon()
    }

    package func close(_ mode: PipeCloseMode) {
        loop.checkIsolated()
        guard phase == .open else { return }
        guard mode == .afterWriting else { return end(abort: SequencedStream.abort) }
        phase = .lingering
        lastProgress = loop.now
        // The other end reads nothing more if it has closed the pipe, too.
        guard failure == nil, !stream.isReadToEnd else {
            return loop.later { [self] in drained(abort: nil) }
        }
        stream.finish()
        channel?.hasPackets(self)
        watchTime()
    }

    // MARK: Calls by the channel

    /// Returns the next packet to send; nil if there is none now.
    package func nextPacket() -> [UInt8]? {
        guard phase != .over, failure == nil else { return nil }
        let wasFinished = stream.isFinished
        guard let packet = stream.nextPacket(at: loop.now) else { return nil }
        noteProgress(from: wasFinished)
        watchTime()
        return packet
    }

    /// Handles a packet for this pipe. Never called from inside a call by the session.
    package func receive(_ packet: ByteSlice) {
        guard phase != .over, failure == nil else { return }
        let wasFinished = stream.isFinished
        if let failure = stream.receive(packet, at: loop.now) { return fail(failure) }
        noteProgress(from: wasFinished)
        takeTurn()
        channel?.hasPackets(self)
    }

    /// Reports that a pipe that was closed has nothing left to send. Never called from inside a call by the session.
    package func confirmSent() { drained(abort: nil) }

    /// Breaks the pipe for a reason of its transport's own. Reports it in a later turn.
    package func fail(with error: NighError) {
        guard phase != .over, failure == nil else { return }
        failure = (error, nil)
        takeTurnSoon()
    }

    /// Ends the pipe and drops the bytes that wait. Nobody is notified but the channel.
    ///
    /// - Parameter abort: the packet for the other end, if it has to know.
    package func end(abort: [UInt8]?) {
        guard phase != .over else { return }
        phase = .over
        handler = nil
        counters.bytesWaiting = 0
        if let timer { loop.cancel(timer.id) }
        timer = nil
        channel?.isOver(self, abort: abort)
    }

    // MARK: Turns

    private func noteProgress(from wasFinished: Bool) {
        let waiting = stream.waiting
        if waiting != counters.bytesWaiting { lastProgress = loop.now }
        counters.bytesWaiting = waiting
        if phase == .lingering, !wasFinished, stream.isFinished { channel?.hasSentAll(self) }
        if owesRoomNotice, waiting <= Self.highWaterMark / 2 { takeTurnSoon() }
    }

    private func takeTurnSoon() {
        guard !isTurnDue else { return }
        isTurnDue = true
        loop.later { [self] in
            isTurnDue = false
            takeTurn()
        }
    }

    private func takeTurn() {
        if phase == .lingering, let failure { return drained(abort: failure.abort) }
        guard phase == .open, let handler else { return }
        if let failure { return closed(failure.error, abort: failure.abort) }
        if owesRoomNotice, stream.waiting <= Self.highWaterMark / 2 {
            owesRoomNotice = false
            handler.pipeBecameWritable(self)
        }
        while phase == .open, isReading, let bytes = stream.read() {
            counters.bytesReceived += bytes.count
            handler.pipe(self, received: bytes)
        }
        guard phase == .open else { return }
        channel?.hasPackets(self)
        guard stream.isReadToEnd else { return }
        guard !hasReportedEnd else { return closed(nil) }
        hasReportedEnd = true
        takeTurnSoon()
        handler.pipeEnded(self)
    }

    private func fail(_ reason: SequencedStream.Failure) {
        let (cause, advice): (NighError.Cause, String?) =
            switch reason {
            case .aborted: (.linkLost, nil)
            case .packetsLost: (.linkLost, "packets were lost on the way")
            case .invalid(let problem): (.protocolViolation(problem), nil)
            }
        let error = NighError(.conversing, cause, transport: scheme, advice: advice)
        failure = (error, reason == .aborted ? nil : SequencedStream.abort)
        takeTurnSoon()
    }

    private func closed(_ error: NighError?, abort: [UInt8]? = nil) {
        let receiver = handler
        end(abort: abort)
        receiver?.pipeClosed(self, error: error)
    }

    private func drained(abort: [UInt8]?) {
        guard phase == .lingering else { return }
        let receiver = handler
        end(abort: abort)
        receiver?.pipeDrained(self)
    }

    // MARK: Time

    /// Sets the timer for the next deadline. It is not set anew for every packet: when it fires too early, it is set
    /// again.
    private func watchTime() {
        guard let moment = nextMoment else { return }
        if let timer {
            guard moment < timer.moment else { return }
            loop.cancel(timer.id)
        }
        let id = loop.schedule(at: moment) { [weak self] in
            self?.timer = nil
            self?.timePassed()
        }
        timer = (id, moment)
    }

    private var nextMoment: Moment? {
        let lingering = phase == .lingering ? lastProgress + Self.lingerTime : nil
        guard let resendTime = stream.resendTime else { return lingering }
        return lingering.map { min($0, resendTime) } ?? resendTime
    }

    private func timePassed() {
        let now = loop.now
        if phase == .lingering, now >= lastProgress + Self.lingerTime {
            return drained(abort: SequencedStream.abort)
        }
        stream.resend(at: now)
        channel?.hasPackets(self)
        watchTime()
    }
}
