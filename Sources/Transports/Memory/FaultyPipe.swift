import NighCore

/// Wraps another pipe, with a `FaultQueue` in each direction.
///
/// Loop only.
final class FaultyPipe: Pipe {
    private enum Phase {
        case open
        /// Closed on this side. The bytes in the queue are still being written.
        case closing
        /// Closed on this side, or never reported. The other end must not notice, so the inner pipe stays open and is
        /// ignored.
        case orphaned
        /// Over, except for the last call to the handler.
        case ending
        case done
    }

    let number: Int
    let isInbound: Bool
    let opened: Moment
    let outgoing: FaultQueue
    let incoming: FaultQueue
    /// Called once, when nothing is left of the pipe.
    var didFinish: (FaultyPipe) -> Void = { _ in }
    /// Called with the error that the inner pipe ended with.
    var innerFailed: (NighError) -> Void = { _ in }

    private let inner: any Pipe
    private let loop: any EventLoop
    private let scheme: String
    private var handler: (any PipeHandler)?
    private var phase = Phase.open
    /// Closed on this side after writing, so the last call to the handler is `pipeDrained`.
    private var isClosedAfterWriting = false
    private var isInnerOver = false
    /// The inner pipe was closed after writing, and has not reported that it is drained.
    private var isInnerDraining = false
    private var isHeldUp = false
    private var isInnerPaused = false
    private var isInnerStarted = false
    private var timers: [LoopTimer] = []
    private var lingerTimer: LoopTimer?
    private var datagramPort: FaultyDatagramPort?
    private var bytesReceived = 0
    private var bytesWritten = 0
    private var random: SeededGenerator
    /// The faults of this pipe, for its bytes and its datagrams.
    private(set) var plan = FaultPlan.none

    init(
        _ inner: any Pipe, number: Int, isInbound: Bool, scheme: String, on loop: any EventLoop,
        random: SeededGenerator
    ) {
        var random = random
        self.inner = inner
        self.number = number
        self.isInbound = isInbound
        self.scheme = scheme
        self.loop = loop
        opened = loop.now
        outgoing = FaultQueue(.outgoing, on: loop, random: random.fork())
        incoming = FaultQueue(.incoming, on: loop, random: random.fork())
        self.random = random.fork()
        outgoing.emit = { [unowned self] in sendOut($0) }
        incoming.emit = { [unowned self] in deliver($0) }
        outgoing.didRelease = { [unowned self] in reportRoom() }
        incoming.didRelease = { [unowned self] in throttleInner() }
    }

    var localAddress: TransportAddress? { inner.localAddress }
    var remoteAddress: TransportAddress? { inner.remoteAddress }
    var isOpen: Bool { phase == .open }

    var writableBytes: Int { min(inner.writableBytes, outgoing.highWaterMark) - outgoing.heldBytes }

    var counters: PipeCounters {
        var counters = PipeCounters()
        counters.bytesReceived = bytesReceived
        counters.bytesWritten = bytesWritten
        // An orphan's bytes are lost, as far as its user can tell.
        if phase != .orphaned { counters.bytesWaiting = outgoing.heldBytes + inner.counters.bytesWaiting }
        return counters
    }

    func start(handler: any PipeHandler) {
        precondition(self.handler == nil, "a pipe was started twice")
        guard phase == .open else { return }
        self.handler = handler
        startInner()
    }

    func write(_ queue: inout ByteQueue) {
        guard phase == .open else { return queue.removeAll() }
        bytesWritten += queue.byteCount
        if outgoing.isTransparent {
            inner.write(&queue)
        } else {
            while phase == .open, let slice = queue.popFirst() { outgoing.accept(slice) }
            queue.removeAll()
        }
        if writableBytes <= 0 { isHeldUp = true }
    }

    func openDatagrams() -> (any DatagramPort)? {
        guard phase == .open, let port = inner.openDatagrams() else { return nil }
        let faulty = FaultyDatagramPort(port, of: self, on: loop, random: random.fork())
        datagramPort = faulty
        return faulty
    }

    private func closeDatagrams() {
        datagramPort?.close()
        datagramPort = nil
    }

    func pauseReading() {
        guard phase == .open else { return }
        incoming.isPaused = true
        throttleInner()
    }

    func resumeReading() {
        guard phase == .open else { return }
        incoming.isPaused = false
        throttleInner()
    }

    func close(_ mode: PipeCloseMode) {
        guard !isClosedAfterWriting else { return }
        isClosedAfterWriting = mode == .afterWriting
        if mode == .now { handler = nil }
        // The pipe was cut, and the handler is not notified yet.
        if phase == .ending, mode == .now { return forget() }
        guard phase == .open else { return }
        if outgoing.isMute {
            orphan()
        } else if mode == .now {
            finish(closingInner: .now)
        } else {
            phase = .closing
            lingerTimer = loop.schedule(at: loop.now + MemoryTransport.lingerTime) {
                if self.outgoing.isMute { self.orphan() } else { self.finish(closingInner: .now) }
            }
            outgoing.accept(.drained)
        }
    }

    /// Breaks the pipe. The handler is notified in a later turn; the inner pipe is closed now.
    func cut(inner mode: PipeCloseMode = .now) {
        guard phase != .ending else { return }
        finish(closingInner: mode)
    }

    /// Leaves the inner pipe open and passes nothing on any more, in either direction.
    func orphan() {
        phase = .orphaned
        closeDatagrams()
        outgoing.stop()
        incoming.stop()
        cancelTimers()
        startInner()
        if isInnerPaused { inner.resumeReading() }
        if handler != nil { loop.later { self.makeLastCall() } }
    }

    /// Ends the pipe without notifying the handler: the transport shuts down, or refuses the pipe.
    func abandon() {
        handler = nil
        finish(closingInner: .now)
    }

    /// Closes an orphan once the rules no longer forbid it.
    func unblock() {
        if phase == .orphaned, !outgoing.isBlocked { finish(closingInner: .now) }
    }

    /// Applies `plan`, whose times count from when the pipe opened.
    func apply(_ plan: FaultPlan) {
        guard phase == .open else { return }
        cancelTimers()
        self.plan = plan
        let now = loop.now
        for queue in [outgoing, incoming] {
            queue.apply(plan)
            queue.setStalledByPlan(false)
        }
        let queues = [outgoing, incoming].filter { plan.direction.covers($0.direction) }
        if let age = plan.cutAfter { at(opened + Moment.Span(age)) { self.cut() } }
        if let odds = plan.cut { drawCut(odds) }
        if let age = plan.vanishAfter {
            let start = opened + Moment.Span(age)
            if start <= now { for queue in queues { queue.vanish() } }
            if start > now { at(start) { for queue in queues { queue.vanish() } } }
        }
        if let age = plan.stallAfter {
            let start = opened + Moment.Span(age)
            let end = plan.stallFor.map { start + Moment.Span($0) } ?? .never
            guard now < end else { return }
            if start <= now { for queue in queues { queue.setStalledByPlan(true) } }
            if start > now { at(start) { for queue in queues { queue.setStalledByPlan(true) } } }
            if end != .never { at(end) { for queue in queues { queue.setStalledByPlan(false) } } }
        }
    }

    /// Draws for each second from now on whether the pipe breaks in it, and breaks the pipe in the first such second.
    private func drawCut(_ odds: FaultPlan.Odds) {
        for second in 1...Self.longestDraw where odds.areHit(using: &random) {
            return at(loop.now + .seconds(second)) { self.cut() }
        }
    }

    /// The number of seconds for which a cut is drawn. Nobody waits longer for one.
    private static let longestDraw: Int64 = 100_000

    private func at(_ moment: Moment, _ act: @escaping () -> Void) {
        timers.append(loop.schedule(at: moment, act))
    }

    private func sendOut(_ item: FaultQueue.Item) {
        switch item {
        case .bytes(let bytes):
            var queue = ByteQueue()
            queue.append(bytes)
            inner.write(&queue)
        case .drained: finish(closingInner: .afterWriting)
        case .cut: cut(inner: .afterWriting)
        case .ended, .closed: break
        }
    }

    private func deliver(_ item: FaultQueue.Item) {
        guard phase == .open, let handler else { return }
        switch item {
        case .bytes(let bytes):
            bytesReceived += bytes.count
            handler.pipe(self, received: bytes)
        case .ended:
            handler.pipeEnded(self)
        case .closed(let error):
            self.handler = nil
            finish(closingInner: nil)
            handler.pipeClosed(self, error: error)
        case .cut: cut()
        case .drained: break
        }
    }

    private func reportRoom() {
        // Bytes still to be sent are lost, including the news of the close.
        if phase == .closing, outgoing.isMute { return orphan() }
        guard isHeldUp, phase == .open, let handler else { return }
        guard outgoing.heldBytes <= outgoing.highWaterMark / 2, writableBytes > 0 else { return }
        isHeldUp = false
        handler.pipeBecameWritable(self)
    }

    /// Pauses the inner pipe while the reader takes nothing or the queue is full.
    private func throttleInner() {
        let mark = incoming.highWaterMark
        let isFull = isInnerPaused ? incoming.heldBytes > mark / 2 : incoming.heldBytes >= mark
        let pauses = incoming.isPaused || isFull
        guard phase == .open, pauses != isInnerPaused else { return }
        isInnerPaused = pauses
        if pauses { inner.pauseReading() } else { inner.resumeReading() }
    }

    private func startInner() {
        guard !isInnerStarted else { return }
        isInnerStarted = true
        inner.start(handler: self)
        if isInnerPaused { inner.pauseReading() }
    }

    private func cancelTimers() {
        for timer in timers { loop.cancel(timer) }
        timers = []
        if let lingerTimer { loop.cancel(lingerTimer) }
        lingerTimer = nil
    }

    private func finish(closingInner mode: PipeCloseMode?) {
        guard phase != .done else { return }
        phase = .ending
        closeDatagrams()
        cancelTimers()
        outgoing.stop()
        incoming.stop()
        if let mode { inner.close(mode) }
        guard handler != nil else { return forget() }
        isInnerDraining = mode == .afterWriting && !isInnerOver
        loop.later { self.makeLastCall() }
    }

    private func forget() {
        phase = .done
        handler = nil
        didFinish(self)
        didFinish = { _ in }
    }

    /// Makes the last call to the handler. If this side has closed the pipe, that waits until the inner pipe is drained
    /// too.
    private func makeLastCall() {
        guard let receiver = handler, !(isClosedAfterWriting && isInnerDraining) else { return }
        if phase == .ending { forget() } else { handler = nil }
        if isClosedAfterWriting { return receiver.pipeDrained(self) }
        receiver.pipeClosed(self, error: NighError(.conversing, .linkLost, transport: scheme))
    }
}

extension FaultyPipe: PipeHandler {
    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        guard phase == .open else { return }
        incoming.accept(bytes)
        throttleInner()
    }

    func pipeBecameWritable(_ pipe: any Pipe) { reportRoom() }

    func pipeEnded(_ pipe: any Pipe) { incoming.accept(.ended) }

    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        if let error { innerFailed(error) }
        isInnerOver = true
        switch phase {
        case .open: incoming.accept(.closed(error))
        case .closing, .orphaned: finish(closingInner: nil)
        case .ending, .done: break
        }
    }

    func pipeDrained(_ pipe: any Pipe) {
        isInnerDraining = false
        if phase == .ending { makeLastCall() }
    }
}
