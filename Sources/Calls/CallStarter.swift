import NighCore
import Synchronization

/// Begins calls in the order in which they came. Each runs up to its first suspension before the next one begins, and
/// none waits for the end of another. So calls reach their actor in order, and actors that call each other back do not
/// wait for each other.
final class CallStarter: Sendable {
    private struct State {
        var waiting = Ring<RunningCall>()
        var isStarting = false
    }

    private let executor: (any TaskExecutor)?
    private let state = Mutex(State())

    /// - Parameter executor: runs the calls; nil is the executor of tasks that prefer none.
    init(on executor: (any TaskExecutor)?) { self.executor = executor }

    /// Begins a call after those that were added before.
    func add(_ call: RunningCall) {
        let isIdle = state.withLock { state in
            state.waiting.append(call)
            defer { state.isStarting = true }
            return !state.isStarting
        }
        guard isIdle else { return }
        Task(executorPreference: executor) { [self] in
            while let call = next() { call.begin(isImmediate: true, on: executor) }
        }
    }

    private func next() -> RunningCall? {
        state.withLock { state in
            let next = state.waiting.popFirst()
            state.isStarting = next != nil
            return next
        }
    }
}
