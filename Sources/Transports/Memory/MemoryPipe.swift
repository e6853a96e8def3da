import NighCore

/// The state that the two ends of a memory pipe share: the bytes under way in each direction, and how to wake each end.
///
/// `@unchecked Sendable`: the ends may be on different loops. Everything in a `Side`, except its constants, is touched
/// only with the wire's lock held. Nothing is called with it held.
final class MemoryWire: @unchecked Sendable {
    /// How the bytes that come in end.
    enum End {
        /// When all that was written has been read.
        case afterReading
        /// At once. Indirect, because an error is large and every turn checks for one.
        indirect case now(NighError?)
    }

    final class Side {
        let loop: any EventLoop
        /// Runs the end's turn on its loop; nil once the end wants no more turns.
        var wake: Wake?
        var wakePending = false
        /// Whether this side has a handler that wants bytes.
        var isReading = false
        /// Whether this side takes no more bytes. It may still wait for its own bytes to be read.
        var isClosed = false
        /// The bytes that the other side wrote and this one has not read.
        var incoming = ByteQueue()
        var end: End?
        /// Whether the other side has filled `incoming` to the mark and waits for room.
        var writerIsHeldUp = false
        /// Whether this side's handler has to be called because there is room to write again.
        var mustReportRoom = false
        /// The datagrams that this side has not taken; nil while it has no port.
        var packets: PacketQueue?

        init(loop: any EventLoop) { self.loop = loop }
    }

    /// Packets on their way to one side.
    struct PacketQueue {
        var waiting: [[UInt8]] = []
        /// Runs the port's turn on its loop.
        let wake: Wake
        var wakePending = false
    }

    /// A closure in a struct. An optional or an array of bare closures would wrap (and allocate) each of them again.
    struct Wake {
        let loop: any EventLoop
        let run: @Sendable () -> Void

        func callAsFunction() { loop.execute(run) }
    }

    let highWaterMark: Int
    let lingerTime: Moment.Span
    let lock = Lock()
    let dialler: Side
    let listener: Side

    init(dialler: any EventLoop, listener: any EventLoop, highWaterMark: Int, lingerTime: Moment.Span) {
        self.dialler = Side(loop: dialler)
        self.listener = Side(loop: listener)
        self.highWaterMark = highWaterMark
        self.lingerTime = lingerTime
    }

    /// Returns the call to make after the lock is released, so that `side` takes a turn. Call it with the lock held.
    func claimWake(of side: Side) -> Wake? {
        guard !side.wakePending, let wake = side.wake else { return nil }
        side.wakePending = true
        return wake
    }
}

/// One end of a pipe through memory. Slices pass from end to end by reference.
///
/// After the other end's `close(.afterWriting)`, everything written before is delivered. Then comes `pipeEnded` and, in
/// a later turn, `pipeClosed` without an error. Bytes that this end writes after that close are dropped. After the
/// other end's `close(.now)`, `pipeClosed` comes at once, with `.linkLost` if bytes were dropped and without an error
/// otherwise.
///
/// Loop only, except for the state that the ends share in the wire.
final class MemoryPipe: Pipe {
    /// The most bytes delivered in one slice, and in one turn.
    private static let sliceLimit = 256 * 1024
    private static let turnLimit = 1024 * 1024

    private enum Phase {
        case open
        /// Closed on this side. Written bytes wait for the other end to read them.
        case lingering
        case done
    }

    private enum Step {
        case received(ByteSlice)
        case writable
        case ended
        /// Indirect, because an error is large and every turn makes a step.
        indirect case closed(NighError?)
        case nothing
    }

    let localAddress: TransportAddress?
    let remoteAddress: TransportAddress?

    /// The transport that owns the pipe. Set on the loop when the pipe is reported.
    weak var owner: MemoryTransport?
    /// The pipe's number among its owner's pipes.
    var number = 0

    private let wire: MemoryWire
    private let local: MemoryWire.Side
    private let remote: MemoryWire.Side
    private let loop: any EventLoop
    private var handler: (any PipeHandler)?
    private var datagrams: MemoryDatagramPort?
    private var phase = Phase.open
    private var hasReportedEnd = false
    private var lingerTimer: LoopTimer?
    private var bytesReceived = 0
    private var bytesWritten = 0

    init(wire: MemoryWire, isDialler: Bool, localAddress: TransportAddress, remoteAddress: TransportAddress) {
        self.wire = wire
        local = isDialler ? wire.dialler : wire.listener
        remote = isDialler ? wire.listener : wire.dialler
        loop = local.loop
        self.localAddress = localAddress
        self.remoteAddress = remoteAddress
        // A reference cycle through the wire, broken when the pipe is done.
        local.wake = MemoryWire.Wake(loop: loop, run: loop.bound { self.takeTurn() })
    }

    var writableBytes: Int { wire.lock.withLock { wire.highWaterMark - remote.incoming.byteCount } }

    var counters: PipeCounters {
        var counters = PipeCounters()
        counters.bytesReceived = bytesReceived
        counters.bytesWritten = bytesWritten
        counters.bytesWaiting = wire.lock.withLock { remote.incoming.byteCount }
        return counters
    }

    func start(handler: any PipeHandler) {
        loop.checkIsolated()
        precondition(self.handler == nil, "a pipe was started twice")
        guard phase == .open else { return }
        self.handler = handler
        resumeReading()
    }

    func write(_ queue: inout ByteQueue) {
        loop.checkIsolated()
        guard !queue.isEmpty else { return }
        guard phase == .open else { return queue.removeAll() }
        bytesWritten += queue.byteCount
        let wake = wire.lock.withLock { () -> MemoryWire.Wake? in
            guard !remote.isClosed, local.end == nil else { return nil }
            remote.incoming.append(contentsOf: &queue)
            if remote.incoming.byteCount >= wire.highWaterMark { remote.writerIsHeldUp = true }
            return remote.isReading ? wire.claimWake(of: remote) : nil
        }
        queue.removeAll()
        wake?()
    }

    func openDatagrams() -> (any DatagramPort)? {
        loop.checkIsolated()
        guard phase == .open, datagrams == nil else { return nil }
        let port = MemoryDatagramPort(wire: wire, local: local, remote: remote)
        datagrams = port
        return port
    }

    func pauseReading() {
        loop.checkIsolated()
        wire.lock.withLock { local.isReading = false }
    }

    func resumeReading() {
        loop.checkIsolated()
        guard phase == .open, handler != nil else { return }
        let wake = wire.lock.withLock {
            local.isReading = true
            let hasNews = !local.incoming.isEmpty || local.end != nil || local.mustReportRoom
            return hasNews ? wire.claimWake(of: local) : nil
        }
        wake?()
    }

    func close(_ mode: PipeCloseMode) {
        loop.checkIsolated()
        guard phase == .open else { return }
        switch mode {
        case .now: finishNow()
        case .afterWriting: linger()
        }
    }

    /// Ends the pipe and drops waiting bytes. This includes a pipe that is closed and only waits for its bytes to be
    /// read.
    func finishNow() {
        guard phase != .done else { return }
        var dropped = ByteQueue()
        let wake = wire.lock.withLock { () -> MemoryWire.Wake? in
            local.isClosed = true
            dropped.append(contentsOf: &local.incoming)
            // The other end is closed already, and may be waiting for the bytes just dropped.
            guard !remote.isClosed else { return wire.claimWake(of: remote) }
            let isLoss = !remote.incoming.isEmpty
            dropped.append(contentsOf: &remote.incoming)
            if isLoss || remote.end == nil { remote.end = .now(isLoss ? Self.linkLost : nil) }
            return wire.claimWake(of: remote)
        }
        finish()
        wake?()
    }

    private func linger() {
        var dropped = ByteQueue()
        var isDelivered = false
        let wake = wire.lock.withLock { () -> MemoryWire.Wake? in
            local.isClosed = true
            local.isReading = false
            dropped.append(contentsOf: &local.incoming)
            isDelivered = remote.isClosed || remote.incoming.isEmpty
            if !remote.isClosed { remote.end = remote.end ?? .afterReading }
            return wire.claimWake(of: remote)
        }
        phase = .lingering
        if isDelivered {
            takeAnotherTurn()
        } else {
            lingerTimer = loop.schedule(at: loop.now + wire.lingerTime) {
                self.drained { self.finishNow() }
            }
        }
        wake?()
    }

    /// Ends the pipe by `end` and calls `pipeDrained`. Either no written bytes wait any more, or `end` drops them.
    private func drained(_ end: () -> Void) {
        let receiver = handler
        end()
        receiver?.pipeDrained(self)
    }

    private func finish() {
        phase = .done
        handler = nil
        datagrams?.close()
        datagrams = nil
        if let lingerTimer { loop.cancel(lingerTimer) }
        lingerTimer = nil
        wire.lock.withLock {
            local.isClosed = true
            local.isReading = false
            local.wake = nil
        }
        owner?.forget(self)
    }

    private func takeTurn() {
        var delivered = 0
        var wakeOther: MemoryWire.Wake?
        wire.lock.withLock { local.wakePending = false }
        while true {
            if phase == .lingering, wire.lock.withLock({ remote.isClosed || remote.incoming.isEmpty }) {
                return drained { finish() }
            }
            guard phase == .open, let handler else { return }
            guard delivered < Self.turnLimit else { return takeAnotherTurn() }
            let step = nextStep(&wakeOther)
            wakeOther?()
            wakeOther = nil
            switch step {
            case .received(let bytes):
                delivered += bytes.count
                bytesReceived += bytes.count
                handler.pipe(self, received: bytes)
            case .writable:
                handler.pipeBecameWritable(self)
            case .ended:
                hasReportedEnd = true
                takeAnotherTurn()
                return handler.pipeEnded(self)
            case .closed(let error):
                finish()
                return handler.pipeClosed(self, error: error)
            case .nothing:
                return
            }
        }
    }

    private func takeAnotherTurn() {
        let wake = wire.lock.withLock { wire.claimWake(of: local) }
        wake?()
    }

    /// Returns the next report. `wakeOther` is set if the other end has to learn that this one has read.
    private func nextStep(_ wakeOther: inout MemoryWire.Wake?) -> Step {
        wire.lock.withLock {
            if case .now(let error) = local.end { return .closed(error) }
            if local.mustReportRoom {
                local.mustReportRoom = false
                // This end may have filled the pipe again meanwhile. Then it is notified later.
                if !remote.writerIsHeldUp { return .writable }
            }
            if local.isReading, let slice = local.incoming.popFirst(atMost: Self.sliceLimit) {
                let isDrained = local.end != nil && local.incoming.isEmpty
                let hasRoom = local.writerIsHeldUp && local.incoming.byteCount <= wire.highWaterMark / 2
                if hasRoom {
                    local.writerIsHeldUp = false
                    remote.mustReportRoom = true
                }
                if isDrained || hasRoom { wakeOther = wire.claimWake(of: remote) }
                return .received(slice)
            }
            guard local.end != nil, local.incoming.isEmpty else { return .nothing }
            return hasReportedEnd ? .closed(nil) : .ended
        }
    }

    private static let linkLost = NighError(.conversing, .linkLost, transport: MemoryTransport.schemeName)
}
