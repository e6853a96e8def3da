import Dispatch
import Glibc
import Synchronization

/// Cancels a task at the first SIGINT or SIGTERM, and ends the program at the second.
enum Interruption {
    /// The task is cancelled from another thread, which `UnsafeCurrentTask` allows while its closure runs; hence
    /// `@unchecked Sendable`.
    private struct RunningTask: @unchecked Sendable {
        let task: UnsafeCurrentTask
    }

    private struct State {
        var task: RunningTask?
        var hasCome = false
    }

    /// Runs `body`, which the first signal cancels.
    static func cancelling<Result>(_ body: () async throws -> Result) async rethrows -> Result {
        let state = Mutex(State())
        let handle: @Sendable () -> Void = {
            state.withLock { state in
                if state.hasCome { _exit(130) }
                state.hasCome = true
                state.task?.task.cancel()
            }
        }
        let numbers = [SIGINT, SIGTERM]
        let sources = numbers.map { number in
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler(handler: handle)
            // Dispatch only watches: the signal would still end the program.
            signal(number, SIG_IGN)
            source.resume()
            return source
        }
        defer {
            for (number, source) in zip(numbers, sources) {
                source.cancel()
                signal(number, SIG_DFL)
            }
        }
        return try await withUnsafeCurrentTask { task in
            state.withLock { $0.task = task.map(RunningTask.init) }
            defer { state.withLock { $0.task = nil } }
            return try await body()
        }
    }
}
