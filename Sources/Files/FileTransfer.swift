import NighCore
import Synchronization

/// Files on their way to or from a peer.
///
/// The transfer goes on by itself, also when the program lets go of this object. If the link breaks it waits for
/// another one. If the conversation ends, the transfer fails; when the same files are offered again, it continues where
/// it was.
public final class FileTransfer: Sendable {
    /// The peer at the other end.
    public let peer: PeerID
    /// Whether the files come from the peer.
    public let isIncoming: Bool
    private let state: Mutex<State>
    /// Has the run look at `commands`.
    private let wake: @Sendable () -> Void

    /// Gets what became of one item.
    package typealias ResultHandler = @Sendable (FileResult) -> Void

    /// What the program wants of the transfer.
    enum Command: Sendable {
        case accept(@Sendable () throws(FileFailure) -> any FileStore, atMost: Int, onResult: ResultHandler?)
        case admitOtherPrograms
        case pause(String)
        case resume
        case stop(FileFault)
        /// Ends a transfer whose offer has not come whole.
        case stopUnlisted
    }

    private struct State {
        var items: [FileItem]
        var count = TransferCount()
        var isUnderway = false
        var rate: TransferRate?
        var commands: [Command] = []
        var results: [FileResult] = []
        var ending: Result<Void, NighError>?
        var waiting: [CheckedContinuation<Void, Never>] = []
        var readers: [AsyncStream<FileProgress>.Continuation] = []
        var reportedAt: Moment?
    }

    init(
        with peer: PeerID, isIncoming: Bool, items: [FileItem], wake: @escaping @Sendable () -> Void
    ) {
        self.peer = peer
        self.isIncoming = isIncoming
        self.wake = wake
        state = Mutex(State(items: items))
    }

    /// What is transferred.
    public var items: [FileItem] { state.withLock { $0.items } }

    var isUnderway: Bool { state.withLock { $0.isUnderway && $0.ending == nil } }

    /// Whether it has begun or ended, so that nobody has to accept or decline it any more.
    package var isAnswered: Bool { state.withLock { $0.isUnderway || $0.ending != nil } }

    /// How far the transfer is now.
    public var progress: FileProgress { state.withLock { Self.progress($0) } }

    /// How far the transfer is now, and again when that has changed, ten times a second at most. A slow reader gets the
    /// newest only. The sequence ends with the transfer.
    public var updates: some AsyncSequence<FileProgress, Never> & Sendable {
        let (stream, continuation) = AsyncStream.makeStream(
            of: FileProgress.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { state in
            continuation.yield(Self.progress(state))
            if state.ending == nil { state.readers.append(continuation) } else { continuation.finish() }
        }
        return stream
    }

    /// What became of each item, in the order of `items`; empty until the transfer has ended.
    public var results: [FileResult] { state.withLock { $0.results } }

    /// Waits for the end. Fails if a file did not arrive; `results` says what became of the others.
    @discardableResult
    public func finish() async throws(NighError) -> [FileResult] {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if state.ending == nil { state.waiting.append(continuation) }
                return state.ending != nil
            }
            if hasEnded { continuation.resume() }
        }
        let (ending, results) = state.withLock { ($0.ending, $0.results) }
        try ending?.get()
        return results
    }

    /// Stops for now: nothing moves until `resume`. The other program sees the reason.
    public func pause(because reason: String = "") { order(.pause(reason)) }

    /// Goes on after `pause`.
    public func resume() { order(.resume) }

    /// Ends the transfer. The other program gets the reason. What the receiver has of a file stays, and if the files
    /// are offered again, the transfer continues from there.
    public func cancel(because reason: String = "") {
        order(.stop(FileFault(.cancelled, reason.isEmpty ? "it was cancelled" : reason)))
    }

    /// Ends the transfer for this reason.
    package func stop(_ fault: FileFault) { order(.stop(fault)) }

    // MARK: The run

    func order(_ command: Command) {
        state.withLock { $0.commands.append(command) }
        wake()
    }

    func takeCommands() -> [Command] {
        state.withLock { state in
            defer { state.commands.removeAll() }
            return state.commands
        }
    }

    private static func progress(_ state: State, at now: Moment = LoopThread.now) -> FileProgress {
        let count = state.count
        let phase: FileProgress.State =
            if state.ending != nil {
                .ended
            } else if let pause = count.pause {
                .paused(isHere: pause.isHere, reason: pause.reason)
            } else {
                state.isUnderway ? .transferring : .waiting
            }
        return FileProgress(
            state: phase, done: count.done, total: count.isTotalKnown ? count.total : nil,
            resumed: count.resumed, transferred: count.transferred, itemsDone: count.itemsDone,
            itemsFailed: count.itemsFailed, itemCount: count.items,
            current: count.current.flatMap { state.items.indices.contains($0) ? state.items[$0] : nil },
            bytesPerSecond: state.rate?.bytesPerSecond(at: now))
    }

    /// The offer has come whole.
    func list(_ items: [FileItem]) { state.withLock { $0.items = items } }

    /// Notes how far the transfer is, and tells the readers from time to time.
    func note(_ count: TransferCount, isUnderway: Bool, at now: Moment) {
        state.withLock { state in
            // A side that has ended is no longer under way, and the transfer does not wait because of that.
            let isUnderway = isUnderway || state.isUnderway
            guard count != state.count || isUnderway != state.isUnderway else { return }
            if isUnderway, !state.isUnderway { state.rate = TransferRate(from: count.moved, at: now) }
            let isNews = count.pause != state.count.pause || isUnderway != state.isUnderway
            state.count = count
            state.isUnderway = isUnderway
            state.rate?.reached(count.moved, at: now)
            if !isNews, let last = state.reportedAt, now - last < .milliseconds(100) { return }
            state.reportedAt = now
            let progress = Self.progress(state, at: now)
            for reader in state.readers { reader.yield(progress) }
        }
    }

    /// Ends the transfer for those who wait for it.
    func end(_ ending: Result<Void, NighError>, _ results: [FileResult]) {
        let (waiting, readers, last) = state.withLock { state in
            state.results = results
            state.ending = ending
            defer {
                state.waiting = []
                state.readers = []
            }
            return (state.waiting, state.readers, Self.progress(state))
        }
        for reader in readers {
            reader.yield(last)
            reader.finish()
        }
        for continuation in waiting { continuation.resume() }
    }
}
