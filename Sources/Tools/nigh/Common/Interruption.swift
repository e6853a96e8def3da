import NighCore
import ProgramLife

/// Ctrl-C and its relatives, or a reader of the results who has gone: the command is to sum up and end.
///
/// `@unchecked Sendable`: what changes is guarded by the lock.
final class Interruption: @unchecked Sendable {
    private let lock = Lock()
    private var hasCome = false
    private var handlers: [@Sendable () -> Void] = []

    init() { Interrupts.onFirst { [weak self] in self?.come() } }

    /// Whether it has come.
    var isRequested: Bool { lock.withLock { hasCome } }

    /// Calls `handler` once, when it comes; at once where it has. On any thread.
    func onRequest(_ handler: @escaping @Sendable () -> Void) {
        let isLate = lock.withLock {
            if !hasCome { handlers.append(handler) }
            return hasCome
        }
        if isLate { handler() }
    }

    /// Ends the command as Ctrl-C would.
    func come() {
        let handlers = lock.withLock { () -> [@Sendable () -> Void] in
            guard !hasCome else { return [] }
            hasCome = true
            defer { self.handlers = [] }
            return self.handlers
        }
        for handler in handlers { handler() }
    }

    /// Runs `body` as a task that is cancelled when it comes.
    func cancels<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value
    {
        let task = Task.detached { try await body() }
        onRequest { task.cancel() }
        return try await task.value
    }
}
