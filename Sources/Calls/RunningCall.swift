import NighCore
import Synchronization

/// A call that this side works on: before it begins, while its task runs, and afterwards.
final class RunningCall: Sendable {
    private enum State {
        case waiting
        case running(Task<Void, Never>)
        case cancelled
    }

    private let state = Mutex(State.waiting)
    private let work: @Sendable () async -> CallOutcome
    private let completion: @Sendable (CallOutcome?) -> Void

    /// - Parameter completion: called once, on any thread, with the outcome; with nil if the call was cancelled before
    ///   it began.
    init(
        _ work: @escaping @Sendable () async -> CallOutcome,
        completion: @escaping @Sendable (CallOutcome?) -> Void
    ) {
        self.work = work
        self.completion = completion
    }

    /// Begins the task.
    ///
    /// - Parameters:
    ///   - isImmediate: whether the task runs up to its first suspension before this returns.
    ///   - executor: runs the task; nil is the executor of tasks that prefer none.
    func begin(isImmediate: Bool = false, on executor: (any TaskExecutor)?) {
        guard !isCancelled else { return completion(nil) }
        let operation = { @Sendable [work, completion] in completion(await work()) }
        let task =
            isImmediate
            ? Task.immediate(executorPreference: executor, operation: operation)
            : Task(executorPreference: executor, operation: operation)
        let wasCancelled = state.withLock { state in
            if case .cancelled = state { return true }
            state = .running(task)
            return false
        }
        if wasCancelled { task.cancel() }
    }

    private var isCancelled: Bool { state.withLock { if case .cancelled = $0 { true } else { false } } }

    func cancel() {
        let task = state.withLock { state -> Task<Void, Never>? in
            defer { state = .cancelled }
            return if case .running(let task) = state { task } else { nil }
        }
        task?.cancel()
    }
}
