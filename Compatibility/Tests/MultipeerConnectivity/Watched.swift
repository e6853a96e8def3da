import MultipeerConnectivity
import Testing

/// A value that any thread may change, and for which tests wait.
///
/// `@unchecked Sendable`: the lock guards all state.
final class Watched<Value>: @unchecked Sendable {
    private let name: String
    private let lock = NSLock()
    private var kept: Value
    private var waiters: [CheckedContinuation<Void, Never>] = []

    /// - Parameter name: whose value it is. The message of a failed wait begins with it.
    init(_ value: Value, of name: String) {
        kept = value
        self.name = name
    }

    var value: Value { lock.withLock { kept } }

    /// Changes the value and wakes up the tasks that wait for it.
    func change(_ change: (inout Value) -> Void) {
        lock.withLock { change(&kept) }
        wakeWaiters()
    }

    /// Waits until the condition holds for the value. If the suite's time limit is reached before that, records an
    /// issue that tells the value.
    func wait(until isTrue: (Value) -> Bool) async {
        // An earlier wait has reported the failure.
        guard !Task.isCancelled else { return }
        await withTaskCancellationHandler {
            while !isTrue(value) {
                guard !Task.isCancelled else {
                    Issue.record("\(name) got this, and not what the test waits for: \(value)")
                    return
                }
                await waitForChange(unless: isTrue)
            }
        } onCancel: {
            wakeWaiters()
        }
    }

    /// Waits until the value changes, unless the condition holds or the task is cancelled.
    private func waitForChange(unless isTrue: (Value) -> Bool) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isDue = lock.withLock {
                guard !isTrue(kept), !Task.isCancelled else { return true }
                waiters.append(continuation)
                return false
            }
            if isDue { continuation.resume() }
        }
    }

    private func wakeWaiters() {
        let woken = lock.withLock {
            defer { waiters = [] }
            return waiters
        }
        for waiter in woken { waiter.resume() }
    }
}

/// A value that comes later.
struct Held<Value>: Sendable {
    private let watched = Watched<Value?>(nil, of: "A test")

    func give(_ value: Value) { watched.change { $0 = value } }

    /// Throws if the suite's time limit is reached before the value comes.
    func value() async throws -> Value {
        await watched.wait { $0 != nil }
        guard let value = watched.value else { throw CancellationError() }
        return value
    }
}

/// Checks a condition again and again until it holds, for values whose changes nobody reports. Gives up at the suite's
/// time limit.
func look(until isTrue: () -> Bool) async {
    while !isTrue(), !Task.isCancelled { await Task.yield() }
}
