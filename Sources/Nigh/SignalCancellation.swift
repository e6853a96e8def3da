import Dispatch
import Glibc
import NighCore
import Synchronization

/// Cancels a task at the first SIGINT or SIGTERM that the program does not handle itself, and lets the second one do
/// what it would have done without this: end the program.
enum SignalCancellation {
    private struct State {
        /// The task to cancel, from another thread. It runs for as long as this is kept, so the reference is valid.
        var task: UnsafeCurrentTask?
        var hasCome = false
    }

    /// How many calls of `cancelling` are under way, and the signals that would end the program without them.
    private static let uses = Mutex(Uses())

    private struct Uses {
        var count = 0
        var taken: [Int32] = []
    }

    /// Takes the signals that would end the program: Dispatch only watches them. Returns these.
    private static func begin() -> [Int32] {
        uses.withLock { uses in
            if uses.count == 0 {
                uses.taken = [SIGINT, SIGTERM].filter { isUnhandled($0) }
                for number in uses.taken { signal(number, SIG_IGN) }
            }
            uses.count += 1
            return uses.taken
        }
    }

    /// Whether nobody in the program handles or ignores the signal.
    private static func isUnhandled(_ number: Int32) -> Bool {
        var action = sigaction()
        sigaction(number, nil, &action)
        return action.__sigaction_handler.sa_handler == nil
    }

    private static func end() {
        uses.withLock { uses in
            uses.count -= 1
            guard uses.count == 0 else { return }
            for number in uses.taken { signal(number, SIG_DFL) }
        }
    }

    /// Runs `body`, which the first signal cancels.
    nonisolated(nonsending) static func cancelling<Result>(
        _ body: nonisolated(nonsending) () async throws -> Result
    ) async rethrows -> Result {
        let state = Guarded(State())
        let handle: @Sendable (Int32) -> Void = { number in
            state.withLock { state in
                if state.hasCome {
                    signal(number, SIG_DFL)
                    raise(number)
                }
                state.hasCome = true
                state.task?.cancel()
            }
        }
        let sources = begin().map { number in
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { handle(number) }
            source.resume()
            return source
        }
        withUnsafeCurrentTask { task in state.withLock { $0.task = task } }
        defer {
            state.withLock { $0.task = nil }
            for source in sources { source.cancel() }
            end()
        }
        return try await body()
    }
}
