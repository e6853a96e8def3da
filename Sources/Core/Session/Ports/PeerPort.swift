import Synchronization

/// Messages on their way to a lane, encoded by another thread than the loop's.
struct StagedRun: Sendable {
    let lane: Lane
    /// Encoded small messages, or the payload of one large one.
    var bytes: ByteSlice
    var isLarge: Bool
    /// Whether the payload is a copy in a chunk of the session's.
    var isCopy = false
    /// The kind of the large message.
    var kind: MessageKind?
    var messageCount: Int
}

/// The part of a conversation that any thread may touch: whether and how much may be sent, the messages that other
/// threads have staged, the tasks that wait for room, and the number of bytes that the program has read.
///
/// The lock is held for a few memory operations, never during a call to other code.
final class PeerPort: Sendable {
    let peer: PeerID
    private let peerName: DisplayName
    private let limit: Int
    let messageLimit: Int
    private let largestWholeMessage: Int
    /// Whether the peer takes messages of kinds.
    private let acceptsKinds: Bool

    private let mainRoom = Room()
    private let bulkRoom = Room()
    private let readBytes = Atomic<Int>(0)
    private let stagedCount = Atomic<Int>(0)
    private let waiterNumbers = Atomic<UInt64>(0)
    private let isListed = Atomic<Bool>(false)
    private let isOver = Atomic<Bool>(false)
    private let state = Guarded(State())
    let chunks: Guarded<ChunkPool>
    /// Puts the port on the loop's list. The port must not be on the list already.
    private let notify: @Sendable (PeerPort) -> Void
    private let attendedCount = Atomic<Int>(0)
    /// The chunks into which large messages are copied.
    let largeChunks: LargeChunks

    private struct State {
        /// Why nothing more is admitted; nil while messages are.
        var ending: Ending?
        var staged = Ring<StagedRun>()
        var chunk: Chunk?
        /// The tasks that wait for room, one queue per lane.
        var waiters: InlineArray<2, Ring<Waiter>> = [Ring(), Ring()]
        /// The streams whose programs have done something.
        var attended = Ring<StreamPort>()
    }

    /// An object of its own, so that a port that is not closed has no memory for an error.
    private final class Ending: Sendable {
        let error: NighError

        init(_ error: NighError) { self.error = error }
    }

    private struct Waiter {
        let number: UInt64
        let resume: @Sendable (NighError?) -> Void
    }

    /// The bytes that one lane holds, and how many tasks wait for it to hold fewer. Each lane has its own, so that a
    /// transfer that fills `.bulk` leaves `.main` free.
    private struct Room: ~Copyable, Sendable {
        /// The bytes that the loop admitted, less all that was released. Only the loop writes it, so that admitting a
        /// message costs no locked instruction. It is negative when other threads admitted much.
        let byLoop = Atomic<Int>(0)
        /// The bytes that other threads admitted.
        let byOthers = Atomic<Int>(0)
        let waiterCount = Atomic<Int>(0)

        @inline(__always)
        func admits(_ limit: Int, isNext: Bool) -> Bool {
            held < limit && (isNext || waiterCount.load(ordering: .relaxed) == 0)
        }

        /// The bytes admitted and not released.
        @inline(__always)
        var held: Int {
            byLoop.load(ordering: .sequentiallyConsistent) &+ byOthers.load(ordering: .sequentiallyConsistent)
        }
    }

    @inline(__always)
    private func inRoom<Result>(of lane: Lane, _ body: (borrowing Room) -> Result) -> Result {
        lane == .main ? body(mainRoom) : body(bulkRoom)
    }

    /// Creates a port with nothing in it.
    ///
    /// - Parameters:
    ///   - chunks: where messages of other threads and the bytes of streams are encoded; peers share it.
    ///   - largeChunks: where large messages are assembled and copied to; peers share it, too.
    ///   - notify: puts the port on the loop's list.
    init(
        peer: PeerID, limits: SessionLimits, peerHello: Hello,
        chunks: Guarded<ChunkPool> = PeerPort.makeChunks(), largeChunks: LargeChunks = LargeChunks(),
        notify: @escaping @Sendable (PeerPort) -> Void = { _ in }
    ) {
        self.notify = notify
        self.peer = peer
        peerName = peerHello.name
        self.chunks = chunks
        self.largeChunks = largeChunks
        limit = limits.sendBuffer
        messageLimit = min(limits.message, peerHello.maximumMessage)
        largestWholeMessage = min(limits.frame, peerHello.maximumFrame)
        acceptsKinds = peerHello.acceptsKinds
    }

    /// Bytes accepted and not acknowledged, of both lanes.
    var outstanding: Int {
        mainRoom.held &+ bulkRoom.held
    }

    /// Whether another thread has staged messages that must go before the loop's own.
    var hasStaged: Bool { stagedCount.load(ordering: .acquiring) > 0 }

    /// Admits a message of `count` bytes from the loop, or throws the reason why not. Call it on the loop only.
    ///
    /// Tasks that wait for room go first. `isNext` says that the caller is the one that has waited longest. Two threads
    /// that are admitted at the same instant may together exceed the limit by one message more.
    @inline(__always)
    func admit(_ count: Int, on lane: Lane = .main, isNext: Bool = false) throws(NighError) {
        guard admitsAtOnce(count, on: lane, isNext: isNext) else { throw refusal(of: count) }
    }

    /// Admits a message like `admit`, but returns false instead of throwing the reason.
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

    /// Whether the conversation has ended.
    var hasEnded: Bool { isOver.load(ordering: .sequentiallyConsistent) }

    /// The peer's name and short PeerID, for errors.
    var label: String { peerName.label(of: peer) }

    private func tooLarge(_ count: Int) -> NighError {
        NighError(
            .sending, .messageTooLarge(size: count, limit: messageLimit), peer: label,
            advice: "split it, or raise `limits.message` on both sides")
    }

    private var full: NighError {
        NighError(
            .sending, .bufferFull(limit: limit), peer: label,
            advice: "wait for room with `await send`, or send less")
    }

    // MARK: Other threads

    /// Encodes and stages a message from another thread than the loop's.
    func stage(
        _ bytes: UnsafeRawBufferPointer, of kind: MessageKind? = nil, on lane: Lane, isNext: Bool
    ) throws(NighError) {
        try checkAccepts(kind)
        try state.withLock { state throws(NighError) in
            let count = bytes.count &+ kind.byteCount
            try admitLocked(count, lane, isNext, &state)
            if count > largestWholeMessage {
                append(
                    StagedRun(
                        lane: lane, bytes: largeChunks.slice(of: bytes), isLarge: true, isCopy: true,
                        kind: kind, messageCount: 1),
                    &state)
            } else {
                let needed = FrameHeader.byteCount &+ count
                let chunk = roomFor(needed, &state)
                let start = chunk.filled
                if let kind {
                    EncodedMessage.write(bytes, of: kind, on: lane, to: chunk.claim(needed))
                } else {
                    EncodedMessage.write(bytes, on: lane, to: chunk.claim(needed))
                }
                appendSmall(in: chunk, from: start, on: lane, &state)
            }
        }
    }

    /// Stages a message, by reference if that is worth it.
    func stage(
        _ payload: ByteSlice, of kind: MessageKind? = nil, on lane: Lane, isNext: Bool
    ) throws(NighError) {
        guard SendLane.refersTo(payload, pieceLimit: largestWholeMessage) else {
            return try payload.withUnsafeBytes { bytes throws(NighError) in
                try stage(bytes, of: kind, on: lane, isNext: isNext)
            }
        }
        try checkAccepts(kind)
        try state.withLock { state throws(NighError) in
            try admitLocked(payload.count &+ kind.byteCount, lane, isNext, &state)
            append(StagedRun(lane: lane, bytes: payload, isLarge: true, kind: kind, messageCount: 1), &state)
        }
    }

    /// Fails for a message of a kind if the peer takes none.
    func checkAccepts(_ kind: MessageKind?) throws(NighError) {
        guard kind == nil || acceptsKinds else {
            throw NighError(
                .sending, .unsupported("messages of kinds"), peer: label,
                advice: "update the peer's program")
        }
    }

    /// Creates the chunks for messages of other threads, which all peers of a session share.
    static func makeChunks() -> Guarded<ChunkPool> {
        Guarded(ChunkPool(chunkSize: 16 << 10, keepAtMost: 256))
    }

    /// Returns the chunk in use if `needed` bytes fit, otherwise another.
    private func roomFor(_ needed: Int, _ state: inout State) -> Chunk {
        if let chunk = state.chunk, chunk.room >= needed { return chunk }
        let full = state.chunk.take()
        let fresh = chunks.withLock { chunks in
            if let full { chunks.recycle(full) }
            return chunks.take(withRoom: needed)
        }
        state.chunk = fresh
        return fresh
    }

    private func admitLocked(
        _ count: Int, _ lane: Lane, _ isNext: Bool, _ state: inout State
    ) throws(NighError) {
        if let ending = state.ending { throw ending.error }
        let isAdmitted =
            count <= messageLimit
            && inRoom(of: lane) { room in
                guard room.admits(limit, isNext: isNext) else { return false }
                room.byOthers.wrappingAdd(SendLane.cost(of: count), ordering: .relaxed)
                return true
            }
        if !isAdmitted { throw refusal(of: count) }
    }

    /// Stages the small message that lies in `chunk` from `start` on: with the one before, if it follows that directly.
    private func appendSmall(in chunk: Chunk, from start: Int, on lane: Lane, _ state: inout State) {
        var isJoined = false
        if !state.staged.isEmpty {
            state.staged.update(state.staged.count &- 1) { last in
                guard !last.isLarge, last.lane == lane else { return }
                isJoined = last.bytes.extend(in: chunk, from: start)
                if isJoined { last.messageCount &+= 1 }
            }
        }
        guard !isJoined else { return }
        append(
            StagedRun(lane: lane, bytes: chunk.slice(from: start), isLarge: false, messageCount: 1), &state)
    }

    private func append(_ run: StagedRun, _ state: inout State) {
        state.staged.append(run)
        stagedCount.wrappingAdd(1, ordering: .releasing)
    }

    /// Returns a number for `waitForRoom` under which nobody else waits.
    func newWaiterNumber() -> UInt64 { waiterNumbers.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Calls `resume` with nil once there is room on the lane, or with the reason why there never will be. At most
    /// once.
    func waitForRoom(
        number: UInt64, on lane: Lane = .main, _ resume: @escaping @Sendable (NighError?) -> Void
    ) {
        let row = Int(lane.rawValue)
        let result: NighError?? = state.withLock { state in
            if let ending = state.ending { return .some(ending.error) }
            if inRoom(of: lane, { $0.held }) < limit, state.waiters[row].isEmpty {
                return .some(nil)
            }
            state.waiters[row].append(Waiter(number: number, resume: resume))
            inRoom(of: lane) { _ = $0.waiterCount.wrappingAdd(1, ordering: .sequentiallyConsistent) }
            return nil
        }
        guard let result else {
            // Room may have become free after it was looked at and before the waiter was added, when the loop saw no
            // waiter to admit. One of the two sees what the other did, because both write before they read.
            return admitNextWaiter(on: lane)
        }
        resume(result)
    }

    /// Cancels `waitForRoom`: its `resume` is called now, unless it was called before.
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
        waiter?.resume(NighError(.sending, .cancelled, peer: label))
    }

    /// Counts `bytes` that the program has read. Returns true if the caller has to put the port on the loop's list: it
    /// was not on it, and either there is enough to report, or nothing more will be added because the conversation is
    /// over.
    func didRead(_ bytes: Int, notifyAfter: Int) -> Bool {
        let total = readBytes.wrappingAdd(bytes, ordering: .sequentiallyConsistent).newValue
        return (total >= notifyAfter || hasEnded) && markListed()
    }

    /// Marks the port as listed for the loop to look at. Returns false if it is listed already.
    func markListed() -> Bool { !isListed.exchange(true, ordering: .acquiringAndReleasing) }

    // MARK: The loop

    /// Returns the next stream whose program has done something.
    func takeAttended() -> StreamPort? {
        guard attendedCount.load(ordering: .acquiring) > 0 else { return nil }
        return state.withLock { state in
            guard let stream = state.attended.popFirst() else { return nil }
            attendedCount.wrappingSubtract(1, ordering: .relaxed)
            return stream
        }
    }

    /// Marks the port as not listed. The next message staged or read lists it again.
    func markUnlisted() { isListed.store(false, ordering: .sequentiallyConsistent) }

    /// Returns the next staged run, in the order in which they were staged.
    func takeStaged() -> StagedRun? {
        guard hasStaged else { return nil }
        return state.withLock { state in
            guard let run = state.staged.popFirst() else { return nil }
            stagedCount.wrappingSubtract(1, ordering: .relaxed)
            return run
        }
    }

    /// Returns the bytes that the program has read since the last call.
    func takeRead() -> Int { readBytes.exchange(0, ordering: .relaxed) }

    /// Releases `bytes` of acknowledged messages on a lane, and admits the task that has waited longest for the room.
    func release(_ bytes: Int, on lane: Lane = .main) {
        inRoom(of: lane) { room in
            room.byLoop.store(
                room.byLoop.load(ordering: .relaxed) &- bytes, ordering: .sequentiallyConsistent)
        }
        admitNextWaiter(on: lane)
    }

    /// Admits the task that has waited longest for a lane, if there is room. That task calls this again once it has
    /// sent or given up.
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

    /// Ends sending for good and forgets the staged messages. All waiting tasks get `error`.
    func close(_ error: NighError) {
        isOver.store(true, ordering: .sequentiallyConsistent)
        stop(error)
        state.withLock { state in
            state.staged.removeAll()
            stagedCount.store(0, ordering: .relaxed)
            // A stream in this list would keep the port, and the port the stream.
            state.attended.removeAll()
            attendedCount.store(0, ordering: .relaxed)
        }
    }

    /// Admits nothing more. Staged messages can still be taken. All waiting tasks get `error`.
    func stop(_ error: NighError) {
        let waiters = state.withLock { state -> [Waiter] in
            guard state.ending == nil else { return [] }
            state.ending = Ending(error)
            var waiters: [Waiter] = []
            for row in 0..<2 {
                while let waiter = state.waiters[row].popFirst() { waiters.append(waiter) }
            }
            mainRoom.waiterCount.store(0, ordering: .relaxed)
            bulkRoom.waiterCount.store(0, ordering: .relaxed)
            return waiters
        }
        for waiter in waiters { waiter.resume(error) }
    }
}

extension PeerPort: StreamAttention {
    func attend(to stream: StreamPort) {
        let isListed = state.withLock { state in
            guard !hasEnded else { return false }
            state.attended.append(stream)
            attendedCount.wrappingAdd(1, ordering: .releasing)
            return true
        }
        if isListed, markListed() { notify(self) }
    }
}
