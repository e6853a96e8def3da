import Synchronization

/// Messages encoded by a thread that is not the loop's, on their way to a lane.
struct StagedRun: Sendable {
    let lane: Lane
    /// Encoded small messages, or the payload of one large one.
    var bytes: ByteSlice
    var isLarge: Bool
    /// The payload is a copy in a chunk of the session's.
    var isCopy = false
    var messageCount: Int
}

/// The part of a conversation that any thread may touch: whether and how much may be sent, what other threads have
/// staged, who waits for room, and what the program has read.
///
/// The lock is held for a few memory operations, never while calling out.
final class PeerPort: Sendable {
    let peer: PeerID
    private let limit: Int
    private let messageLimit: Int
    private let largestWholeMessage: Int

    private let mainRoom = Room()
    private let bulkRoom = Room()
    private let readBytes = Atomic<Int>(0)
    private let stagedCount = Atomic<Int>(0)
    private let waiterNumbers = Atomic<UInt64>(0)
    private let isListed = Atomic<Bool>(false)
    private let isOver = Atomic<Bool>(false)
    private let state = Guarded(State())
    private let chunks: Guarded<ChunkPool>
    /// Where large messages are copied to.
    let largeChunks: LargeChunks

    private struct State {
        var closed: NighError?
        var staged = Ring<StagedRun>()
        var chunk: Chunk?
        /// Those who wait for room, a row for each lane.
        var waiters = [Ring<Waiter>(), Ring<Waiter>()]
    }

    private struct Waiter {
        let number: UInt64
        let resume: @Sendable (NighError?) -> Void
    }

    /// What one lane holds, and how many wait for it to hold less. Each lane has its own, so that a transfer that fills
    /// `.bulk` leaves `.main` free.
    private struct Room: ~Copyable, Sendable {
        /// What the loop let in, less all that was released. The loop alone writes it, so that letting a message in costs no
        /// locked instruction; where other threads let much in, it is below zero.
        let byLoop = Atomic<Int>(0)
        /// What other threads let in.
        let byOthers = Atomic<Int>(0)
        let waiterCount = Atomic<Int>(0)

        @inline(__always)
        func admits(_ limit: Int, isNext: Bool) -> Bool {
            held < limit && (isNext || waiterCount.load(ordering: .relaxed) == 0)
        }

        /// Bytes let in and not released.
        @inline(__always)
        var held: Int {
            byLoop.load(ordering: .sequentiallyConsistent) &+ byOthers.load(ordering: .sequentiallyConsistent)
        }
    }

    @inline(__always)
    private func inRoom<Result>(of lane: Lane, _ body: (borrowing Room) -> Result) -> Result {
        lane == .main ? body(mainRoom) : body(bulkRoom)
    }

    /// - Parameters:
    ///   - chunks: where messages of other threads are encoded; peers share it.
    ///   - largeChunks: where large messages are put together and copied to; peers share it too.
    init(
        peer: PeerID, limits: SessionLimits, peerHello: Hello,
        chunks: Guarded<ChunkPool> = PeerPort.makeChunks(), largeChunks: LargeChunks = LargeChunks()
    ) {
        self.peer = peer
        self.chunks = chunks
        self.largeChunks = largeChunks
        limit = limits.sendBuffer
        messageLimit = min(limits.message, peerHello.maximumMessage)
        largestWholeMessage = min(limits.frame, peerHello.maximumFrame)
    }

    /// Bytes accepted and not acknowledged, of both lanes.
    var outstanding: Int {
        mainRoom.held &+ bulkRoom.held
    }

    /// Whether another thread has left messages that must go before the loop's own.
    var hasStaged: Bool { stagedCount.load(ordering: .acquiring) > 0 }

    /// Admits a message of `count` bytes from the loop, or says why not. Only there.
    ///
    /// Who waits for room goes first; `isNext` says that the caller is who has waited longest. Two threads that are
    /// admitted in the same instant may together exceed the limit by one message more.
    @inline(__always)
    func admit(_ count: Int, on lane: Lane = .main, isNext: Bool = false) throws(NighError) {
        guard admitsAtOnce(count, on: lane, isNext: isNext) else { throw refusal(of: count) }
    }

    /// The same, without saying why not.
    @inline(__always)
    func admitsAtOnce(_ count: Int, on lane: Lane, isNext: Bool) -> Bool {
        guard count <= messageLimit else { return false }
        return inRoom(of: lane) { room in
            guard room.admits(limit, isNext: isNext) else { return false }
            room.byLoop.store(
                room.byLoop.load(ordering: .relaxed) &+ SendLane.cost(of: count), ordering: .relaxed)
            return true
        }
    }

    private func refusal(of count: Int) -> NighError { count > messageLimit ? tooLarge(count) : full }

    private func tooLarge(_ count: Int) -> NighError {
        NighError(
            .sending, .messageTooLarge(size: count, limit: messageLimit), peer: peer.short,
            advice: "split it, or raise `limits.message` on both sides")
    }

    private var full: NighError {
        NighError(
            .sending, .bufferFull(limit: limit), peer: peer.short,
            advice: "wait for room with `await send`, or send less")
    }

    // MARK: Other threads

    /// Encodes and stages a message from a thread that is not the loop's.
    func stage(_ bytes: UnsafeRawBufferPointer, on lane: Lane, isNext: Bool) throws(NighError) {
        try state.withLock { state throws(NighError) in
            try admitLocked(bytes.count, lane, isNext, &state)
            if bytes.count > largestWholeMessage {
                append(
                    StagedRun(
                        lane: lane, bytes: largeChunks.slice(of: bytes), isLarge: true, isCopy: true,
                        messageCount: 1),
                    &state)
            } else {
                let needed = FrameHeader.byteCount &+ bytes.count
                let chunk = roomFor(needed, &state)
                let start = chunk.filled
                EncodedMessage.write(bytes, on: lane, to: chunk.claim(needed))
                append(
                    StagedRun(lane: lane, bytes: chunk.slice(from: start), isLarge: false, messageCount: 1),
                    &state)
            }
        }
    }

    /// Stages a message by reference if that is worth it.
    func stage(_ payload: ByteSlice, on lane: Lane, isNext: Bool) throws(NighError) {
        guard SendLane.refersTo(payload, pieceLimit: largestWholeMessage) else {
            return try payload.withUnsafeBytes { bytes throws(NighError) in
                try stage(bytes, on: lane, isNext: isNext)
            }
        }
        try state.withLock { state throws(NighError) in
            try admitLocked(payload.count, lane, isNext, &state)
            append(StagedRun(lane: lane, bytes: payload, isLarge: true, messageCount: 1), &state)
        }
    }

    /// Chunks for what other threads send to all peers of a session.
    static func makeChunks() -> Guarded<ChunkPool> {
        Guarded(ChunkPool(chunkSize: 16 << 10, keepAtMost: 256))
    }

    /// The chunk in use if `needed` bytes fit, else another.
    private func roomFor(_ needed: Int, _ state: inout State) -> Chunk {
        if let chunk = state.chunk, chunk.room >= needed { return chunk }
        let full = state.chunk.take()
        let fresh = chunks.withLock { chunks in
            if let full { chunks.recycle(full) }
            return needed <= chunks.chunkSize ? chunks.take() : Chunk(capacity: needed)
        }
        state.chunk = fresh
        return fresh
    }

    private func admitLocked(
        _ count: Int, _ lane: Lane, _ isNext: Bool, _ state: inout State
    ) throws(NighError) {
        if let closed = state.closed { throw closed }
        let isAdmitted =
            count <= messageLimit
            && inRoom(of: lane) { room in
                guard room.admits(limit, isNext: isNext) else { return false }
                room.byOthers.wrappingAdd(SendLane.cost(of: count), ordering: .relaxed)
                return true
            }
        if !isAdmitted { throw refusal(of: count) }
    }

    private func append(_ run: StagedRun, _ state: inout State) {
        let last = state.staged.count &- 1
        if last >= 0, !run.isLarge, !state.staged[last].isLarge, state.staged[last].lane == run.lane,
            let joined = state.staged[last].bytes.joined(with: run.bytes)
        {
            state.staged[last].bytes = joined
            state.staged[last].messageCount &+= run.messageCount
        } else {
            state.staged.append(run)
            stagedCount.wrappingAdd(1, ordering: .releasing)
        }
    }

    /// A number for `waitForRoom` that nobody else waits under.
    func newWaiterNumber() -> UInt64 { waiterNumbers.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Calls `resume` with nil once there is room on the lane, or with the reason why there never will be. At most once.
    func waitForRoom(
        number: UInt64, on lane: Lane = .main, _ resume: @escaping @Sendable (NighError?) -> Void
    ) {
        let row = Int(lane.rawValue)
        let verdict: NighError?? = state.withLock { state in
            if let closed = state.closed { return .some(closed) }
            if inRoom(of: lane, { $0.held }) < limit, state.waiters[row].isEmpty {
                return .some(nil)
            }
            state.waiters[row].append(Waiter(number: number, resume: resume))
            inRoom(of: lane) { _ = $0.waiterCount.wrappingAdd(1, ordering: .sequentiallyConsistent) }
            return nil
        }
        guard let verdict else {
            // Room may have come between the look at it and the entry among those who wait, when the loop saw nobody
            // to let in yet. One of the two sees what the other did, because both write before they read.
            return admitNextWaiter(on: lane)
        }
        resume(verdict)
    }

    /// Takes `waitForRoom` back: its `resume` is called now, unless it was before.
    func cancelWait(number: UInt64) {
        let waiter = state.withLock { state -> Waiter? in
            for lane in Lane.allCases {
                let row = Int(lane.rawValue)
                var found: Waiter?
                for _ in 0..<state.waiters[row].count {
                    guard let waiter = state.waiters[row].popFirst() else { break }
                    if waiter.number == number { found = waiter } else { state.waiters[row].append(waiter) }
                }
                guard let found else { continue }
                inRoom(of: lane) { _ = $0.waiterCount.wrappingSubtract(1, ordering: .relaxed) }
                return found
            }
            return nil
        }
        waiter?.resume(NighError(.sending, .cancelled, peer: peer.short))
    }

    /// The program has read `bytes` of what came. Returns true when the loop should be told, and was not yet: when there
    /// is enough of it, or nothing more will be added to it because the conversation is over.
    func didRead(_ bytes: Int, tellAfter: Int) -> Bool {
        let total = readBytes.wrappingAdd(bytes, ordering: .sequentiallyConsistent).newValue
        return (total >= tellAfter || isOver.load(ordering: .sequentiallyConsistent)) && list()
    }

    /// Puts the port on the list of those the loop must look at; false when it is there already.
    func list() -> Bool { !isListed.exchange(true, ordering: .acquiringAndReleasing) }

    // MARK: The loop

    /// Off the list again; what is staged or read from now on lists it anew.
    func unlist() { isListed.store(false, ordering: .sequentiallyConsistent) }

    /// The next staged run, in the order in which they were staged.
    func takeStaged() -> StagedRun? {
        guard hasStaged else { return nil }
        return state.withLock { state in
            guard let run = state.staged.popFirst() else { return nil }
            stagedCount.wrappingSubtract(1, ordering: .relaxed)
            return run
        }
    }

    /// Bytes the program has read since the last call.
    func takeRead() -> Int { readBytes.exchange(0, ordering: .relaxed) }

    /// Messages of so many bytes were acknowledged on a lane: lets in who waits for the room.
    func release(_ bytes: Int, on lane: Lane = .main) {
        inRoom(of: lane) { room in
            room.byLoop.store(
                room.byLoop.load(ordering: .relaxed) &- bytes, ordering: .sequentiallyConsistent)
        }
        admitNextWaiter(on: lane)
    }

    /// Lets in who has waited longest for a lane, if there is room. Whoever was let in calls this again once it has sent
    /// or given up.
    func admitNextWaiter(on lane: Lane = .main) {
        let mayEnter = inRoom(of: lane) { room in
            room.waiterCount.load(ordering: .sequentiallyConsistent) > 0 && room.held < limit
        }
        guard mayEnter else { return }
        let waiter = state.withLock { state -> Waiter? in
            let waiter = state.waiters[Int(lane.rawValue)].popFirst()
            if waiter != nil {
                inRoom(of: lane) { _ = $0.waiterCount.wrappingSubtract(1, ordering: .relaxed) }
            }
            return waiter
        }
        waiter?.resume(nil)
    }

    /// Ends sending for good and forgets what is staged; everybody who waits is told `error`.
    func close(_ error: NighError) {
        isOver.store(true, ordering: .sequentiallyConsistent)
        stop(error)
        state.withLock { state in
            state.staged.removeAll()
            stagedCount.store(0, ordering: .relaxed)
        }
    }

    /// Admits nothing more; what is staged can still be taken. Everybody who waits is told `error`.
    func stop(_ error: NighError) {
        let waiters = state.withLock { state -> [Waiter] in
            guard state.closed == nil else { return [] }
            state.closed = error
            var waiters: [Waiter] = []
            for lane in Lane.allCases {
                while let waiter = state.waiters[Int(lane.rawValue)].popFirst() { waiters.append(waiter) }
                inRoom(of: lane) { $0.waiterCount.store(0, ordering: .relaxed) }
            }
            return waiters
        }
        for waiter in waiters { waiter.resume(error) }
    }
}
