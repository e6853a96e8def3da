// The one pipe of the wire, at this end.
import NighCore

/// A pipe with windows for both directions. It ends in both at once.
///
/// Used on its loop only; hence `@unchecked Sendable`.
final class SerialPipe: Pipe, @unchecked Sendable {
    private enum Phase {
        case open
        /// Closed here; what waits is still to be acknowledged.
        case lingering
        /// The other end has closed it, and what came before is still to be read.
        case ending
        case over
    }

    /// As much may wait before the pipe counts as backed up.
    private static let highWaterMark = 64 * 1_024
    /// A closed pipe ends after this long without progress.
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

    /// Whether it has ended, for this end and the other one.
    var isOver: Bool { phase == .over }

    // MARK: What the session calls

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

    func close(_ manner: PipeCloseManner) {
        guard phase == .open || phase == .ending else { return }
        guard manner == .afterWriting else { return finish() }
        // Ended by the other end, it sends nothing more.
        let isDrained = phase == .ending || sending.waiting == 0
        phase = .lingering
        lastProgress = loop.now
        if isDrained { loop.execute { [weak self] in self?.drained() } }
    }

    /// Nothing of what was written waits any more, or what waits is dropped. Told in a turn of this pipe's own.
    private func drained() {
        guard phase == .lingering else { return }
        let told = handler
        finish()
        told?.pipeDrained(self)
    }

    /// Ends it, and tells nobody but the other end.
    func finish() {
        guard phase != .over else { return }
        phase = .over
        handler = nil
        counters.bytesWaiting = 0
        transport?.isOver(self, allArrived: sending.waiting == 0)
    }

    // MARK: What the wire tells

    /// The next bytes to go out, while the other end has room.
    func nextFrame() -> Frame? {
        guard phase == .open || phase == .lingering, let piece = sending.nextPiece() else { return nil }
        return .data(pipe: number, at: piece.number, bytes: piece.bytes)
    }

    var acknowledgement: Frame { .acknowledge(pipe: number, receiving.acknowledgement) }

    func received(_ bytes: [UInt8], at number: UInt64) {
        guard phase == .open else { return }
        receiving.take(bytes, at: number)
        deliver()
    }

    func acknowledged(_ word: Frame.Acknowledgement) {
        guard sending.take(word) else { return }
        lastProgress = loop.now
        counters.bytesWaiting = sending.waiting
        if phase == .lingering, sending.waiting == 0 { return drained() }
        guard phase == .open, wasFull, sending.waiting <= Self.highWaterMark / 2 else { return }
        wasFull = false
        handler?.pipeBecameWritable(self)
    }

    /// Looks whether something is overdue. `transfer` is what the bytes under way need on this wire.
    func look(_ now: Moment, transfer: (Int) -> Moment.Span) {
        if phase == .lingering, now - lastProgress >= Self.lingerTime { return drained() }
        guard sending.underWay > 0, now - lastProgress > transfer(2 * sending.underWay) + .milliseconds(300)
        else { return }
        lastProgress = phase == .lingering ? lastProgress : now
        sending.goBack()
    }

    /// The other end has closed it, or is gone. In good order, what has come is read before that is told.
    func ended(_ error: NighError?) {
        guard phase == .open else { return drained() }
        phase = .ending
        // A reader that has paused must learn of a loss as well, so as to go on elsewhere.
        if error != nil { tellEnd(error) } else { deliver() }
    }

    private func tellEnd(_ error: NighError?) {
        guard phase == .ending else { return }
        phase = .over
        let told = handler
        handler = nil
        told?.pipeClosed(self, error: error)
        transport?.isOver(self, allArrived: true)
    }

    private func deliverLater() { loop.execute { [weak self] in self?.deliver() } }

    private func deliver() {
        let couldTake = receiving.held.byteCount
        while !isPaused, phase == .open || phase == .ending, let handler, let bytes = receiving.popFirst() {
            counters.bytesReceived += bytes.count
            handler.pipe(self, received: bytes)
        }
        if phase == .ending, receiving.held.isEmpty { return tellEnd(nil) }
        if phase == .open, receiving.held.byteCount < couldTake { transport?.owesAcknowledgement() }
    }
}
