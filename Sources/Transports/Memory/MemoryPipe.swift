import NighCore

/// What the two ends of a memory pipe share: the bytes under way each way, and who has to be woken.
///
/// The ends may live on different loops. Everything in a `Side` beyond its constants is touched with the wire's lock
/// held; nothing is called with it held.
final class MemoryWire: @unchecked Sendable {
    /// How what comes in ends.
    enum End {
        /// When all that was written has been read.
        case afterReading
        /// At once. Indirect, since an error is large and is looked for in every turn.
        indirect case now(NighError?)
    }

    final class Side {
        let loop: any EventLoop
        /// Runs the end's turn on its loop; nil once the end wants to hear nothing more.
        var wake: Wake?
        var wakePending = false
        /// Whether it has a handler that wants bytes.
        var isReading = false
        /// Closed: it takes no bytes any more, though it may still wait for its own to be read.
        var isClosed = false
        /// What the other side wrote and this one has not read.
        var incoming = ByteQueue()
        var end: End?
        /// The other side filled `incoming` to the mark and waits to be told when there is room.
        var writerIsHeldUp = false
        /// This side is to be told that it may write again.
        var hasRoomToTell = false

        init(loop: any EventLoop) { self.loop = loop }
    }

    /// A closure in a struct, so that an optional or an array of them need not wrap (and allocate) it anew.
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

    /// With the lock held: what the caller has to call once it has let go of the lock, so that `side` takes a turn.
    func claimWake(of side: Side) -> Wake? {
        guard !side.wakePending, let wake = side.wake else { return nil }
        side.wakePending = true
        return wake
    }
}

/// One end of a pipe through memory. Slices pass from end to end by reference.
///
/// How an end is told that the other closed: after `close(.afterWriting)` everything written before is delivered, then
/// `pipeEnded`, then, in a later turn, `pipeClosed` without an error; what it writes after the other end's close goes
/// nowhere. After `close(.now)` it is told `pipeClosed` at once, with `.linkLost` when bytes were dropped and without an
/// error otherwise.
///
/// Confined to its loop but for what it shares in the wire; hence `@unchecked Sendable`.
final class MemoryPipe: Pipe, @unchecked Sendable {
    /// The most bytes handed over in one slice, and in one turn.
    private static let sliceLimit = 256 * 1024
    private static let turnLimit = 1024 * 1024

    private enum Phase {
        case open
        /// Closed here; what was written waits for the other end to read it.
        case lingering
        case done
    }

    private enum Step {
        case received(ByteSlice)
        case writable
        case ended
        /// Indirect, since an error is large and every turn makes a step.
        indirect case closed(NighError?)
        case nothing
    }

    let localAddress: TransportAddress?
    let remoteAddress: TransportAddress?

    /// Whose pipe it is; set on the loop when the pipe is told.
    weak var owner: MemoryTransport?
    /// Its number among its owner's pipes.
    var number = 0

    private let wire: MemoryWire
    private let mine: MemoryWire.Side
    private let other: MemoryWire.Side
    private let loop: any EventLoop
    private var handler: (any PipeHandler)?
    private var phase = Phase.open
    private var endWasTold = false
    private var lingerTimer: LoopTimer?
    private var bytesReceived = 0
    private var bytesWritten = 0

    init(wire: MemoryWire, isDialler: Bool, localAddress: TransportAddress, remoteAddress: TransportAddress) {
        self.wire = wire
        mine = isDialler ? wire.dialler : wire.listener
        other = isDialler ? wire.listener : wire.dialler
        loop = mine.loop
        self.localAddress = localAddress
        self.remoteAddress = remoteAddress
        // A cycle through the wire, broken when the pipe is done.
        mine.wake = MemoryWire.Wake(loop: loop) { self.takeTurn() }
    }

    var writableBytes: Int { wire.lock.withLock { wire.highWaterMark - other.incoming.byteCount } }

    var counters: PipeCounters {
        var counters = PipeCounters()
        counters.bytesReceived = bytesReceived
        counters.bytesWritten = bytesWritten
        counters.bytesWaiting = wire.lock.withLock { other.incoming.byteCount }
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
            guard !other.isClosed, mine.end == nil else { return nil }
            other.incoming.append(contentsOf: &queue)
            if other.incoming.byteCount >= wire.highWaterMark { other.writerIsHeldUp = true }
            return other.isReading ? wire.claimWake(of: other) : nil
        }
        queue.removeAll()
        wake?()
    }

    func pauseReading() {
        loop.checkIsolated()
        wire.lock.withLock { mine.isReading = false }
    }

    func resumeReading() {
        loop.checkIsolated()
        guard phase == .open, handler != nil else { return }
        let wake = wire.lock.withLock {
            mine.isReading = true
            let hasNews = !mine.incoming.isEmpty || mine.end != nil || mine.hasRoomToTell
            return hasNews ? wire.claimWake(of: mine) : nil
        }
        wake?()
    }

    func close(_ manner: PipeCloseManner) {
        loop.checkIsolated()
        guard phase == .open else { return }
        switch manner {
        case .now: breakOff()
        case .afterWriting: linger()
        }
    }

    /// Ends the pipe and drops what waits, also when it is closed already and only waits for its bytes to be read.
    func breakOff() {
        guard phase != .done else { return }
        var dropped = ByteQueue()
        let wake = wire.lock.withLock { () -> MemoryWire.Wake? in
            mine.isClosed = true
            dropped.append(contentsOf: &mine.incoming)
            // Closed there already: it may be waiting for what was just dropped.
            guard !other.isClosed else { return wire.claimWake(of: other) }
            let isLoss = !other.incoming.isEmpty
            dropped.append(contentsOf: &other.incoming)
            if isLoss || other.end == nil { other.end = .now(isLoss ? Self.linkLost : nil) }
            return wire.claimWake(of: other)
        }
        finish()
        wake?()
    }

    private func linger() {
        var dropped = ByteQueue()
        var isDelivered = false
        let wake = wire.lock.withLock { () -> MemoryWire.Wake? in
            mine.isClosed = true
            mine.isReading = false
            dropped.append(contentsOf: &mine.incoming)
            isDelivered = other.isClosed || other.incoming.isEmpty
            if !other.isClosed { other.end = other.end ?? .afterReading }
            return wire.claimWake(of: other)
        }
        phase = .lingering
        if isDelivered {
            takeAnotherTurn()
        } else {
            lingerTimer = loop.schedule(at: loop.now + wire.lingerTime) {
                self.drained { self.breakOff() }
            }
        }
        wake?()
    }

    /// `end` is how it ends, now that nothing of what was written waits any more, or for what waits to be dropped.
    private func drained(_ end: () -> Void) {
        let told = handler
        end()
        told?.pipeDrained(self)
    }

    private func finish() {
        phase = .done
        handler = nil
        if let lingerTimer { loop.cancel(lingerTimer) }
        lingerTimer = nil
        wire.lock.withLock {
            mine.isClosed = true
            mine.isReading = false
            mine.wake = nil
        }
        owner?.forget(self)
    }

    private func takeTurn() {
        var delivered = 0
        var wakeOther: MemoryWire.Wake?
        wire.lock.withLock { mine.wakePending = false }
        while true {
            if phase == .lingering, wire.lock.withLock({ other.isClosed || other.incoming.isEmpty }) {
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
                endWasTold = true
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
        let wake = wire.lock.withLock { wire.claimWake(of: mine) }
        wake?()
    }

    /// What to tell next. `wakeOther` is set when the other end has to learn that this one has read.
    private func nextStep(_ wakeOther: inout MemoryWire.Wake?) -> Step {
        wire.lock.withLock {
            if case .now(let error) = mine.end { return .closed(error) }
            if mine.hasRoomToTell {
                mine.hasRoomToTell = false
                // This end may have written the pipe full again meanwhile; then it will be told once more.
                if !other.writerIsHeldUp { return .writable }
            }
            if mine.isReading, let slice = mine.incoming.popFirst(atMost: Self.sliceLimit) {
                let isDrained = mine.end != nil && mine.incoming.isEmpty
                let hasRoom = mine.writerIsHeldUp && mine.incoming.byteCount <= wire.highWaterMark / 2
                if hasRoom {
                    mine.writerIsHeldUp = false
                    other.hasRoomToTell = true
                }
                if isDrained || hasRoom { wakeOther = wire.claimWake(of: other) }
                return .received(slice)
            }
            guard mine.end != nil, mine.incoming.isEmpty else { return .nothing }
            return endWasTold ? .closed(nil) : .ended
        }
    }

    private static let linkLost = NighError(.conversing, .linkLost, transport: MemoryTransport.schemeName)
}
