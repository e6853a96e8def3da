import Synchronization

/// Where the port of a stream reports that its program has done something. The loop will look at it.
protocol StreamAttention: AnyObject, Sendable {
    func attend(to stream: StreamPort)
}

/// The part of a stream that any thread may touch: the bytes that the program has not sent or not read yet, how each
/// direction ended, and the tasks that wait.
///
/// Bytes are copied once on the way out, into the frames that travel. The lock is held for a few memory operations and
/// that copy, never during a call to other code but `execute` of a loop.
/// This file is long because the state of a stream is private to it.
final class StreamPort: Sendable {
    let number: UInt32
    let name: String
    let purpose: StreamPurpose
    let peer: PeerID
    let identity: PeerID
    private let peerName: DisplayName
    /// Whether this side opened the stream.
    let isOwn: Bool

    /// The number of bytes that may wait to be sent.
    private let room: Int
    /// How many bytes are read before the loop is notified.
    private let notifyAfter: UInt64
    private let chunks: Guarded<ChunkPool>
    private let attention: any StreamAttention
    private let isListed = Atomic<Bool>(false)
    private let state: Guarded<StreamPortState>

    /// - Parameters:
    ///   - window: the number of bytes that may wait in each direction.
    ///   - frameRoom: the most bytes of the stream in one frame.
    ///   - chunks: the memory for frames and for copies of short pieces, which streams share.
    init(
        number: UInt32, name: String, purpose: StreamPurpose, peer: PeerID, identity: PeerID,
        peerName: DisplayName, isOwn: Bool, window: Int, frameRoom: Int, chunks: Guarded<ChunkPool>,
        attention: any StreamAttention
    ) {
        self.number = number
        self.name = name
        self.purpose = purpose
        self.peer = peer
        self.identity = identity
        self.peerName = peerName
        self.isOwn = isOwn
        room = window
        notifyAfter = UInt64(max(window / 4, 1))
        self.attention = attention
        self.chunks = chunks
        state = Guarded(
            StreamPortState(unsent: StreamFrameQueue(number: number, frameRoom: frameRoom, chunks: chunks)))
    }

    /// Runs `change` with the lock held, then resumes the tasks that it has woken.
    private func waking<Result>(_ change: (inout StreamPortState) -> Result) -> Result {
        let (result, woken) = state.withLock { state -> (Result, StreamWaiters) in
            let result = change(&state)
            var woken = StreamWaiters()
            woken.take(from: &state.woken)
            return (result, woken)
        }
        woken.resume()
        return result
    }

    /// Runs `change` as `waking` does, and has the loop look at the stream if `change` returns true.
    private func changing(_ change: (inout StreamPortState) -> Bool) {
        if waking(change) { attend() }
    }

    private func attend() {
        guard !isListed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        attention.attend(to: self)
    }

    /// Marks the port as not listed. The next action of the program lists it again. Call it before looking at the port.
    func markUnlisted() { isListed.store(false, ordering: .sequentiallyConsistent) }

    // MARK: Writing

    /// Takes as many bytes as there is room for, and returns how many. Fails if nothing can be written any more.
    func write(_ bytes: UnsafeRawBufferPointer) throws(NighError) -> Int {
        let taken = try state.withLock { state throws(NighError) -> Int in
            switch state.sending {
            case .open: break
            case .finished:
                throw error(.sending, .invalid("write: the stream is finished"))
            case .cancelled(let reason): throw error(.sending, .streamCancelled(reason))
            case .failed(let error): throw error
            }
            let count = min(bytes.count, max(0, room &- state.unsent.byteCount))
            state.unsent.append(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
            return count
        }
        if taken > 0 { attend() }
        return taken
    }

    /// Ends writing: bytes written before still arrive.
    func finish() {
        changing { state in
            guard case .open = state.sending else { return false }
            state.sending = .finished
            // Tasks that wait for the end of writing; for code on a loop, which has just ended it, this is no news.
            state.woken.take(from: &state.writers)
            return true
        }
    }

    /// Gives up writing. Unsent bytes are dropped.
    func cancelWriting(_ reason: String) {
        changing { state in
            guard case .open = state.sending else { return false }
            state.sending = .cancelled(reason)
            state.unsent.removeAll()
            state.wakeWriters()
            return true
        }
    }

    // MARK: Reading

    /// Takes the next bytes that have come.
    func read() -> ByteStream.Reading {
        let (reading, isNews) = state.withLock { state -> (ByteStream.Reading, Bool) in
            guard let bytes = state.arrived.popFirst() else { return (nothingLeft(state), false) }
            state.unread &-= bytes.count
            state.read &+= UInt64(bytes.count)
            let isLast = state.unread == 0 && !state.receiving.isOpen
            return (.bytes(bytes), isLast || state.read &- state.readTaken >= notifyAfter)
        }
        if isNews { attend() }
        return reading
    }

    /// Why no more bytes come, even if some are still unread; nil if more may come, or they ended in good order.
    var failure: NighError? {
        state.withLock { state in
            if case .failed(let error) = nothingLeft(state) { error } else { nil }
        }
    }

    private func nothingLeft(_ state: StreamPortState) -> ByteStream.Reading {
        switch state.receiving {
        case .open: .nothing
        case .finished: .end
        case .cancelled(let reason): .failed(error(.receiving, .streamCancelled(reason)))
        case .failed(let error): .failed(error)
        }
    }

    /// Gives up reading. Unread bytes are dropped.
    func cancelReading(_ reason: String) {
        changing { state in
            switch state.receiving {
            case .cancelled: return false
            // The other side has ended its writing already, and need not be told.
            case .finished, .failed: state.isStopTaken = true
            case .open: break
            }
            state.receiving = .cancelled(reason)
            state.dropUnread()
            state.wakeReaders()
            return true
        }
    }

    // MARK: Waiting

    /// Waits until there may be room to write, or writing has ended, or the task is cancelled.
    nonisolated(nonsending) func waitForRoom() async {
        await wait(in: \.writers) { [room] state in state.isWritable(within: room) }
    }

    /// Waits until writing has ended, or the task is cancelled. Returns why nothing more can be written; nil if this
    /// side has finished.
    nonisolated(nonsending) func waitForStop() async -> NighError? {
        while true {
            switch state.withLock({ $0.sending }) {
            case .open: break
            case .finished: return nil
            case .cancelled(let reason): return error(.sending, .streamCancelled(reason))
            case .failed(let error): return error
            }
            if Task.isCancelled { return error(.sending, .cancelled) }
            await wait(in: \.writers) { state in !state.sending.isOpen }
        }
    }

    /// Waits until there may be something to read, or reading has ended, or the task is cancelled.
    nonisolated(nonsending) func waitForBytes() async {
        await wait(in: \.readers) { state in state.isReadable }
    }

    /// Waits for bytes to read, for room to write (each if asked for), for `wake`, or a change of `isReconnecting`.
    nonisolated(nonsending) func waitForActivity(bytes: Bool, room isRoomWanted: Bool) async {
        await wait(in: \.watchers) { [room] state in
            state.isWoken || state.receiving.hasFailed
                || bytes && state.isReadable
                || isRoomWanted && state.isWritable(within: room)
        }
        state.withLock { $0.isWoken = false }
    }

    /// Runs `work` once on the loop, in a later turn, as soon as there is something to read (with `bytes`) or room to
    /// write (with `room`), or a direction has failed. A failure for which work was run counts only if the parameters
    /// name its direction. Replaces the work of an earlier call. Call this on `loop` only.
    func notify(
        bytes: Bool, room isRoomWanted: Bool, on loop: any EventLoop, _ work: @escaping () -> Void
    ) {
        state.withLock { [room] state in
            state.loopWaiter = StreamPortState.LoopWaiter(
                loop: loop, work: loop.bound(work), wantsBytes: bytes, wantsRoom: isRoomWanted)
            let isReady =
                state.hasUnreportedFailure
                || bytes && state.isReadable
                || isRoomWanted && state.isWritable(within: room)
            if isReady { state.notifyLoop() }
        }
    }

    /// Whether the link is lost, and the session looks for another one. A change does what `wake` does.
    var isReconnecting: Bool { state.withLock { $0.isReconnecting } }

    func setReconnecting(_ isReconnecting: Bool) {
        waking { state in
            guard state.isReconnecting != isReconnecting else { return }
            state.isReconnecting = isReconnecting
            state.isWoken = true
            state.woken.take(from: &state.watchers)
        }
    }

    /// Ends the present or the next `waitForActivity`.
    func wake() {
        waking { state in
            state.isWoken = true
            state.woken.take(from: &state.watchers)
        }
    }

    private nonisolated(nonsending) func wait(
        in waiters: WritableKeyPath<StreamPortState, StreamWaiters> & Sendable,
        unless isReady: (StreamPortState) -> Bool
    ) async {
        let number = state.withLock { state in
            state.lastWaiter &+= 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let mustWait = state.withLock { state in
                    if Task.isCancelled || isReady(state) { return false }
                    state[keyPath: waiters].append(number, continuation)
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            // It may have been woken, and not be resumed yet.
            state.withLock { $0[keyPath: waiters].remove(number) }?.resume()
        }
    }

    // MARK: The loop: sending

    /// The next thing for the loop to send.
    enum Output {
        /// A frame with this many bytes of the stream.
        case frame(ByteSlice, count: Int)
        /// Everything was sent, and nothing more will come.
        case finish
        case cancel(String)
    }

    /// Whether the program has given something that the loop has not taken. Without `credit` bytes do not count.
    func hasOutput(credit: Bool) -> Bool {
        state.withLock { state in
            if state.unsent.byteCount > 0 { return credit }
            return !state.sending.isOpen && !state.isSendingEndTaken
        }
    }

    /// The bytes that the program has written and the loop has not taken.
    var unsentByteCount: Int { state.withLock { $0.unsent.byteCount } }

    /// Takes the next output. Without `credit` it is no bytes.
    func takeOutput(credit: Bool) -> Output? {
        waking { state in
            if state.unsent.byteCount > 0 { return credit ? takeFrame(&state) : nil }
            guard !state.isSendingEndTaken else { return nil }
            switch state.sending {
            case .open: return nil
            case .finished:
                state.isSendingEndTaken = true
                state.unsent.removeAll()
                return .finish
            case .cancelled(let reason):
                state.isSendingEndTaken = true
                return .cancel(reason)
            case .failed: return nil
            }
        }
    }

    private func takeFrame(_ state: inout StreamPortState) -> Output? {
        guard let (frame, count) = state.unsent.takeFirst() else { return nil }
        if state.unsent.byteCount <= room / 2 { state.wakeWriters() }
        return .frame(frame, count: count)
    }

    /// The other side reads no more. Returns whether it has to be told that nothing more comes.
    func stopped(because reason: String) -> Bool {
        waking { state in
            // Bytes may still wait although nothing more can be written, because this side is leaving.
            guard !state.isSendingEndTaken || state.unsent.byteCount > 0 else { return false }
            state.sending = .failed(error(.sending, .streamCancelled(reason)))
            state.isSendingEndTaken = true
            state.unsent.removeAll()
            state.wakeWriters()
            return true
        }
    }

    // MARK: The loop: receiving

    /// Takes bytes that have come. They are kept as a slice, or copied if the slice would keep a far larger chunk.
    /// Returns whether tasks wait for them, which `wakeReaders` resumes.
    func deliver(_ bytes: UnsafeRawBufferPointer, retained: () -> ByteSlice) -> Bool {
        state.withLock { state in
            guard state.receiving.isOpen else { return false }
            state.unread &+= bytes.count
            let slice = bytes.count >= Self.leastSlice ? retained() : nil
            if let slice, slice.count >= slice.chunk.capacity / Self.mostSlices {
                state.arrived.append(slice)
            } else {
                copy(bytes, &state)
            }
            return state.hasReader
        }
    }

    /// Whether a task waits for bytes, or for anything that happens.
    var hasReader: Bool { state.withLock { $0.hasReader } }

    /// Resumes the tasks that wait for bytes.
    func wakeReaders() { waking { $0.wakeReaders() } }

    /// Shorter pieces are always copied.
    private static let leastSlice = 4 << 10
    /// A slice of a chunk that would hold more of its size is copied. In a chunk of four TLS records there are four
    /// frames of full length, which are a little shorter than a record.
    private static let mostSlices = 5

    private func copy(_ bytes: UnsafeRawBufferPointer, _ state: inout StreamPortState) {
        if state.arrived.isEmpty, state.tail != nil { _ = Chunk.rewindIfUnshared(&state.tail!) }
        if (state.tail?.room ?? 0) < bytes.count {
            let full = state.tail.take()
            state.tail = chunks.withLock { chunks in
                if let full { chunks.recycle(full) }
                return chunks.take(withRoom: bytes.count)
            }
        }
        let chunk = state.tail.unsafelyUnwrapped
        let start = chunk.filled
        chunk.append(bytes)
        let slice = chunk.slice(from: start)
        if !state.arrived.isEmpty {
            var isJoined = false
            state.arrived.update(state.arrived.count &- 1) { isJoined = $0.extend(over: slice) }
            if isJoined { return }
        }
        state.arrived.append(slice)
    }

    /// The other side has written its last byte, which has come.
    func receivedFinish() { endReceiving(.finished) }

    /// The other side gave up writing. Bytes that came before can still be read.
    func receivedCancel(_ reason: String) {
        endReceiving(.failed(error(.receiving, .streamCancelled(reason))))
    }

    private func endReceiving(_ end: StreamPortState.Direction) {
        waking { state in
            guard state.receiving.isOpen else {
                // The program has given up reading meanwhile, and the other side need not be told any more.
                state.isStopTaken = true
                return
            }
            state.receiving = end
            state.wakeReaders()
        }
    }

    /// Takes the reason why the program has stopped reading, if the other side still has to get it.
    func takeStop() -> String? {
        state.withLock { state in
            guard case .cancelled(let reason) = state.receiving, !state.isStopTaken else { return nil }
            state.isStopTaken = true
            return reason
        }
    }

    /// Returns the number of bytes that the program has read since the beginning, if the other side should know it:
    /// once a quarter of the window was read since the last time. Smaller amounts add up, so that a quarter that is
    /// read in several parts is reported, too.
    func takeRead() -> UInt64? {
        state.withLock { state in
            guard state.read &- state.readTaken >= notifyAfter else { return nil }
            state.readTaken = state.read
            return state.read
        }
    }

    /// Whether the program has read everything that came.
    var isAllRead: Bool { state.withLock { $0.unread == 0 } }

    /// Accepts no more bytes, for this reason. Bytes written before can still be taken.
    func stopWriting(_ reason: NighError) {
        waking { state in
            guard state.sending.isOpen else { return }
            state.sending = .failed(reason)
            state.isSendingEndTaken = true
            state.wakeWriters()
        }
    }

    /// Ends both directions, with this error for each that had not ended. Bytes that have come can still be read.
    func end(_ error: NighError) {
        waking { state in
            if !state.isSendingEndTaken {
                state.sending = .failed(error)
                state.isSendingEndTaken = true
            }
            state.unsent.removeAll()
            if state.receiving.isOpen { state.receiving = .failed(error) }
            state.isStopTaken = true
            state.wakeWriters()
            state.wakeReaders()
        }
    }

    private func error(_ stage: NighError.Stage, _ cause: NighError.Cause) -> NighError {
        NighError(stage, cause, peer: label)
    }

    /// The peer's name and short PeerID, for errors.
    var label: String { peerName.label(of: identity) }
}
