import Synchronization

/// An answer that a task waits for. If nobody is left who could give it, as when a loop ends with unfinished work, the
/// task gets `otherwise`.
package final class PendingAnswer<Value: Sendable>: Sendable {
    private let continuation: Mutex<CheckedContinuation<Value, Never>?>
    private let otherwise: Value

    private init(_ continuation: CheckedContinuation<Value, Never>, otherwise: Value) {
        self.continuation = Mutex(continuation)
        self.otherwise = otherwise
    }

    deinit { give(otherwise) }

    /// Gives the answer. The first one counts.
    package func give(_ value: Value) { continuation.withLock { $0.take() }?.resume(returning: value) }

    /// Calls `begin`, and waits for the answer that it or somebody later gives.
    package nonisolated(nonsending) static func wait(
        otherwise: Value, _ begin: (PendingAnswer) -> Void
    ) async -> Value {
        await withCheckedContinuation { begin(PendingAnswer($0, otherwise: otherwise)) }
    }
}
