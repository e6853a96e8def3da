import NighCore
import NighSystem
import Synchronization

/// Files on their way to or from a peer.
///
/// The transfer goes on by itself, also when the program lets go of this object. If the link breaks it waits for
/// another one. If the conversation ends, the transfer fails; when the same files are offered again, it continues where
/// it was.
public final class FileTransfer: Sendable {
    /// The peer at the other end.
    public let peer: PeerID
    /// The identity that the peer acts for. An unfinished transfer belongs to it: the peer that continues may be
    /// another program of the same person.
    package let identity: PeerID
    let peerLabel: String
    /// Whether the files come from the peer.
    public let isIncoming: Bool
    private let state: Mutex<State>
    /// Has the run look at `commands`.
    private let wake: @Sendable () -> Void

    /// Gets the result for one item.
    package typealias ResultHandler = @Sendable (FileResult) -> Void

    /// A command of the program to the transfer.
    enum Command: Sendable {
        case accept(@Sendable () throws(FileFailure) -> any FileStore, atMost: Int, onResult: ResultHandler?)
        /// Some time has passed.
        case tick
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
        var isReconnecting = false
        var rate: TransferRate?
        var commands: [Command] = []
        var ending: Ending?
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
        var lastWaiter = 0
        var readers: [AsyncStream<FileProgress>.Continuation] = []
        /// The progress that the readers know.
        var reported: (count: TransferCount, hasRate: Bool, at: Moment)?
        var movedAt = LoopThread.now
    }

    /// The end of a transfer.
    private struct Ending {
        let result: Result<Void, NighError>
        /// The outcome of each item.
        let outcomes: [ItemOutcome]
        /// The reason for items that have no outcome of their own.
        let error: NighError?
    }

    /// - Parameter label: The peer's name, for errors.
    init(
        with peer: PeerID, of identity: PeerID, called label: String, isIncoming: Bool, items: [FileItem],
        wake: @escaping @Sendable () -> Void
    ) {
        self.peer = peer
        self.identity = identity
        peerLabel = label
        self.isIncoming = isIncoming
        self.wake = wake
        state = Mutex(State(items: items))
    }

    /// The files and folders that are transferred.
    public var items: [FileItem] { state.withLock { $0.items } }

    var isUnderway: Bool { state.withLock { $0.isUnderway && $0.ending == nil } }

    /// When a byte last came or went, or this side last worked on the files.
    package var movedAt: Moment { state.withLock { $0.movedAt } }

    /// Whether it has begun or ended, so that nobody has to accept or decline it any more.
    package var isAnswered: Bool { state.withLock { $0.isUnderway || $0.ending != nil } }

    /// How far the transfer is now.
    public var progress: FileProgress { state.withLock { Self.progress($0) } }

    /// How far the transfer is now, and again when that has changed, ten times a second at most. While nothing moves,
    /// the rate changes once a second. A slow reader gets the newest only. The sequence ends with the transfer.
    public var updates: some AsyncSequence<FileProgress, Never> & Sendable {
        let (stream, continuation) = AsyncStream.makeStream(
            of: FileProgress.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { state in
            continuation.yield(Self.progress(state))
            if state.ending == nil { state.readers.append(continuation) } else { continuation.finish() }
        }
        return stream
    }

    /// The result for each item, in the order of `items`; empty until the transfer has ended.
    public var results: [FileResult] {
        let (items, ending) = state.withLock { ($0.items, $0.ending) }
        guard let ending else { return [] }
        return zip(items, ending.outcomes).map { result(of: $0, $1, ending.error) }
    }

    /// Waits for the end. Fails if a file did not arrive; `results` has the others, too. If the task is cancelled, it
    /// fails with `cancelled` at once, and the transfer goes on: `cancel` ends it.
    @discardableResult
    public func finish() async throws(NighError) -> [FileResult] {
        let number = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    if state.ending != nil || Task.isCancelled { return false }
                    state.waiting[number] = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
        }
        guard let ending = state.withLock({ $0.ending }) else {
            throw NighError(stage, .cancelled, peer: peerLabel)
        }
        try ending.result.get()
        return results
    }

    private var stage: NighError.Stage { isIncoming ? .receiving : .sending }

    /// Stops for now: nothing moves until `resume`. The other program sees the reason.
    public func pause(because reason: String = "") { order(.pause(reason)) }

    /// Goes on after `pause`.
    public func resume() { order(.resume) }

    /// Ends the transfer. The other program gets the reason. The bytes that the receiver has stay, and if the files are
    /// offered again, the transfer continues from there.
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
            bytesPerSecond: state.isReconnecting ? nil : state.rate?.bytesPerSecond(at: now),
            isReconnecting: state.isReconnecting && state.ending == nil)
    }

    /// The offer has come whole.
    func list(_ items: [FileItem]) { state.withLock { $0.items = items } }

    /// Updates the progress of the transfer, and passes it to the readers from time to time. `hasMoved` says whether
    /// anything has happened since the last call.
    func note(
        _ count: TransferCount, isUnderway: Bool, isReconnecting: Bool = false, hasMoved: Bool = false,
        at now: Moment
    ) {
        state.withLock { state in
            if hasMoved { state.movedAt = now }
            // A side that has ended is no longer under way, and the transfer does not wait because of that.
            let isUnderway = isUnderway || state.isUnderway
            if isUnderway, !state.isUnderway { state.rate = TransferRate(from: count.moved, at: now) }
            let isNews =
                count.pause != state.count.pause || isUnderway != state.isUnderway
                || isReconnecting != state.isReconnecting
            state.count = count
            state.isUnderway = isUnderway
            state.isReconnecting = isReconnecting
            state.rate?.reached(count.moved, at: now)
            if !isNews, let reported = state.reported {
                let hasChanged = count != reported.count
                guard hasChanged || reported.hasRate,
                    now - reported.at >= (hasChanged ? .milliseconds(100) : .seconds(1))
                else { return }
            }
            let progress = Self.progress(state, at: now)
            state.reported = (count, progress.bytesPerSecond != nil, now)
            for reader in state.readers { reader.yield(progress) }
        }
    }

    /// Ends the transfer as its side has ended.
    func end(_ ending: TransferEnding, _ outcomes: [ItemOutcome]) {
        let overall = error(for: ending)
        var failures: [NighError] = []
        var failureCount = 0
        let items = items
        for (item, outcome) in zip(items, outcomes) {
            guard let error = result(of: item, outcome, overall).error else { continue }
            failureCount += 1
            if failures.count < Self.mostFailures { failures.append(error) }
        }
        let result: Result<Void, NighError> =
            if let overall {
                .failure(overall)
            } else if failureCount == 0 {
                .success(())
            } else if failureCount == 1, items.count == 1 {
                .failure(failures[0])
            } else {
                .failure(
                    NighError(
                        stage,
                        .file(FileFault(.other, "\(failureCount) of \(items.count) files did not arrive")),
                        peer: peerLabel, attempts: failures))
            }
        end(Ending(result: result, outcomes: outcomes, error: overall))
    }

    /// Ends the transfer for its readers and for the tasks that wait for it.
    private func end(_ ending: Ending) {
        let (waiting, readers, last) = state.withLock { state in
            state.ending = ending
            defer {
                state.waiting = [:]
                state.readers = []
            }
            return (state.waiting, state.readers, Self.progress(state))
        }
        for reader in readers {
            reader.yield(last)
            reader.finish()
        }
        for continuation in waiting.values { continuation.resume() }
    }

    // MARK: Results

    /// Returns the result for one item in a transfer that ended for the reason `overall`.
    func result(of item: FileItem, _ outcome: ItemOutcome, _ overall: NighError?) -> FileResult {
        switch outcome {
        case .kept(let path, let hash): FileResult(item: item, path: path, hash: hash, error: nil)
        case .failed(let fault, let words):
            FileResult(
                item: item, path: nil, hash: nil,
                error: NighError(
                    stage, .file(FileFault(fault.reason, words.isEmpty ? item.path : words)),
                    peer: peerLabel))
        case .pending:
            FileResult(
                item: item, path: nil, hash: nil,
                error: overall ?? NighError(stage, .cancelled, peer: peerLabel))
        }
    }

    /// The most single failures that the error of a transfer lists.
    private static let mostFailures = 16

    private func error(for ending: TransferEnding) -> NighError? {
        switch ending {
        case .complete: nil
        case .stopped(let fault), .stoppedHere(let fault): NighError(stage, .file(fault), peer: peerLabel)
        case .lost(let error):
            if case .streamCancelled(let words) = error.cause {
                NighError(stage, .file(FileFault(.cancelled, words)), peer: peerLabel)
            } else {
                NighError(
                    stage, error.cause, peer: peerLabel, transport: error.transport,
                    advice: "send the same files again, and the transfer continues where it was",
                    attempts: error.attempts)
            }
        }
    }
}
