import Dispatch
import Glibc
import Synchronization

/// Cancels a task at the first SIGINT or SIGTERM, and ends the program at the second.
enum Interruption {
    /// The task is cancelled from another thread. It runs for as long as this is kept, so the reference is valid; hence
    /// `@unchecked Sendable`.
    private struct RunningTask: @unchecked Sendable {
        let task: UnsafeCurrentTask
    }

    private struct State {
        var task: RunningTask?
        var hasCome = false
    }

    private static let numbers = [SIGINT, SIGTERM]
    /// How many calls of `cancelling` are under way, and what the signals did before the first of them.
    private static let uses = Mutex(Uses())

    private struct Uses {
        var count = 0
        var former: [sigaction] = []
    }

    /// Keeps the signals from ending the program: Dispatch only watches them.
    private static func begin() {
        uses.withLock { uses in
            if uses.count == 0 {
                uses.former = numbers.map { number in
                    var former = sigaction()
                    sigaction(number, nil, &former)
                    signal(number, SIG_IGN)
                    return former
                }
            }
            uses.count += 1
        }
    }

    private static func end() {
        uses.withLock { uses in
            uses.count -= 1
            guard uses.count == 0 else { return }
            for (number, former) in zip(numbers, uses.former) {
                var former = former
                sigaction(number, &former, nil)
            }
        }
    }

    /// Runs `body`, which the first signal cancels.
    nonisolated(nonsending) static func cancelling<Result>(
        _ body: nonisolated(nonsending) () async throws -> Result
    ) async rethrows -> Result {
        let state = Mutex(State())
        let handle: @Sendable () -> Void = {
            state.withLock { state in
                if state.hasCome { _exit(130) }
                state.hasCome = true
                state.task?.task.cancel()
            }
        }
        begin()
        let sources = numbers.map { number in
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler(handler: handle)
            source.resume()
            return source
        }
        withUnsafeCurrentTask { task in state.withLock { $0.task = task.map(RunningTask.init) } }
        defer {
            state.withLock { $0.task = nil }
            for source in sources { source.cancel() }
            end()
        }
        return try await body()
    }
}
