import NighCore
import ProgramSupport

/// A request to finish the command early: from Ctrl-C or another signal that ends programs, or because nobody reads the
/// results any more. The command then sums up and ends.
///
/// `@unchecked Sendable`: the lock guards all mutable state.
final class StopRequest: @unchecked Sendable {
    private let lock = Lock()
    private var wasRequested = false
    private var handlers: [@Sendable () -> Void] = []

    init() { TerminationSignals.onFirst { [weak self] in self?.request() } }

    /// Whether the request has come.
    var isRequested: Bool { lock.withLock { wasRequested } }

    /// Calls `handler` once when the request comes, or at once if it has come already. The handler may run on any
    /// thread.
    func onRequest(_ handler: @escaping @Sendable () -> Void) {
        let isLate = lock.withLock {
            if !wasRequested { handlers.append(handler) }
            return wasRequested
        }
        if isLate { handler() }
    }

    /// Requests the end of the command, as Ctrl-C does.
    func request() {
        let handlers = lock.withLock { () -> [@Sendable () -> Void] in
            guard !wasRequested else { return [] }
            wasRequested = true
            defer { self.handlers = [] }
            return self.handlers
        }
        for handler in handlers { handler() }
    }

    /// Runs `body` as a task that is cancelled when the request comes.
    func cancelling<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws
        -> Value
    {
        let task = Task.detached { try await body() }
        onRequest { task.cancel() }
        return try await task.value
    }
}
