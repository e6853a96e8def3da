// The wire's one pipe, at this end.
import NighTransport

/// A pipe with a window for each direction. Both directions end at once.
///
/// `@unchecked Sendable`: used on its loop only.
final class SerialPipe: Pipe, @unchecked Sendable {
    private enum Phase {
        case open
        /// Closed by this end; what waits is still to be acknowledged.
        case lingering
        /// Closed by the other end; what arrived before is still to be read.
        case ending
        case over
    }

    /// How many bytes may wait before the pipe counts as backed up.
    private static let highWaterMark = 64 * 1_024
    /// The time without progress after which a closed pipe ends.
    private static let lingerTime = Moment.Span.seconds(10)

    let number: UInt32
    let localAddress: TransportAddress?
    let remoteAddress: TransportAddress?
    private(set) var counters = PipeCounters()
    private let loop: any EventLoop
    private weak var transport: SerialTransport?
    private var handler: (any PipeHandler)?
    private var phase = Phase.open
    private var sending = SendWindow()
    private var receiving = ReceiveWindow()
    private var isPaused = false
    private var wasFull = false
    private var lastProgress: Moment

    init(
        _ number: UInt32, from local: TransportAddress, to remote: TransportAddress,
        of transport: SerialTransport, on loop: any EventLoop
    ) {
        self.number = number
        localAddress = local
        remoteAddress = remote
        self.transport = transport
        self.loop = loop
        lastProgress = loop.now
    }

    /// Whether the pipe is over for both ends.
    var isOver: Bool { phase == .over }

    // MARK: Calls by the session

    var writableBytes: Int { Self.highWaterMark - sending.waiting }

    func start(handler: any PipeHandler) {
        self.handler = handler
        deliverLater()
    }

    func write(_ queue: inout ByteQueue) {
        guard phase == .open else { return queue.removeAll() }
        counters.bytesWritten += queue.byteCount
        sending.append(&queue)
        counters.bytesWaiting = sending.waiting
        if writableBytes <= 0 { wasFull = true }
        transport?.pump()
    }

    func pauseReading() { isPaused = true }

    func resumeReading() {
        isPaused = false
        deliverLater()
    }

    func close(_ mode: PipeCloseMode) {
        guard phase == .open || phase == .ending else { return }
        guard mode == .afterWriting else { return finish() }
        // The other end has closed the pipe, so this end sends nothing more.
        let isDrained = phase == .ending || sending.waiting == 0
        phase = .lingering
        lastProgress = loop.now
        if isDrained { loop.execute { [weak self] in self?.drained() } }
    }

    /// Ends a lingering pipe, and reports that nothing waits any more, whether sent or dropped. Never called from
    /// inside a call by the session.
    private func drained() {
        guard phase == .lingering else { return }
        let receiver = handler
        finish()
        receiver?.pipeDrained(self)
    }

    /// Ends the pipe and notifies only the other end.
    func finish() {
        guard phase != .over else { return }
        phase = .over
        handler = nil
        counters.bytesWaiting = 0
        transport?.pipeEnded(self, allArrived: sending.waiting == 0)
    }

    // MARK: The wire

    /// The next bytes to send, while the other end has room.
    func nextFrame() -> Frame? {
        guard phase == .open || phase == .lingering, let piece = sending.nextPiece() else { return nil }
        return .data(pipe: number, at: piece.number, bytes: piece.bytes)
    }

    var acknowledgement: Frame { .acknowledge(pipe: number, receiving.acknowledgement) }

    func received(_ bytes: [UInt8], at number: UInt64) {
        guard phase == .open else { return }
        receiving.receive(bytes, at: number)
        deliver()
    }

    func acknowledged(_ answer: Frame.Acknowledgement) {
        guard sending.acknowledge(answer) else { return }
        lastProgress = loop.now
        counters.bytesWaiting = sending.waiting
        if phase == .lingering, sending.waiting == 0 { return drained() }
        guard phase == .open, wasFull, sending.waiting <= Self.highWaterMark / 2 else { return }
        wasFull = false
        handler?.pipeBecameWritable(self)
    }

    /// Checks whether something is overdue. `transfer` returns how long a number of bytes takes on this wire.
    func resendIfOverdue(_ now: Moment, transfer: (Int) -> Moment.Span) {
        if phase == .lingering, now - lastProgress >= Self.lingerTime { return drained() }
        guard sending.inFlight > 0, now - lastProgress > transfer(2 * sending.inFlight) + .milliseconds(300)
        else { return }
        lastProgress = phase == .lingering ? lastProgress : now
        sending.goBack()
    }

    /// Handles a close by the other end, or its loss. After a close, what has arrived is read before the end is
    /// reported.
    func ended(_ error: NighError?) {
        guard phase == .open else { return drained() }
        phase = .ending
        // A reader that has paused must also learn of a loss, so that it can go on elsewhere.
        if error != nil { reportEnd(error) } else { deliver() }
    }

    private func reportEnd(_ error: NighError?) {
        guard phase == .ending else { return }
        phase = .over
        let receiver = handler
        handler = nil
        receiver?.pipeClosed(self, error: error)
        transport?.pipeEnded(self, allArrived: true)
    }

    private func deliverLater() { loop.execute { [weak self] in self?.deliver() } }

    private func deliver() {
        let couldTake = receiving.held.byteCount
        while !isPaused, phase == .open || phase == .ending, let handler, let bytes = receiving.popFirst() {
            counters.bytesReceived += bytes.count
            handler.pipe(self, received: bytes)
        }
        if phase == .ending, receiving.held.isEmpty { return reportEnd(nil) }
        if phase == .open, receiving.held.byteCount < couldTake { transport?.acknowledgeSoon() }
    }
}
