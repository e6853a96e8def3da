import Dispatch

/// The tasks that wait on the main queue for a condition to hold.
///
/// `@unchecked Sendable`: only its own methods touch its state, and they run on the main queue.
final class MainWaits: @unchecked Sendable {
    private var waiting:
        [Int: (condition: @MainActor () -> Bool, continuation: CheckedContinuation<Void, Never>)] = [:]
    private var waits = 0

    /// Waits until the condition holds at a `check`; the suite's time limit ends a wait that does not.
    @MainActor func wait(until condition: @escaping @MainActor () -> Bool) async {
        if condition() || Task.isCancelled { return }
        waits += 1
        let number = waits
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiting[number] = (condition, $0) }
        } onCancel: {
            DispatchQueue.main.async { self.waiting.removeValue(forKey: number)?.continuation.resume() }
        }
    }

    /// Ends the waits whose conditions hold. Call it after each change that a condition may look at.
    @MainActor func check() {
        for (number, entry) in waiting where entry.condition() {
            waiting[number] = nil
            entry.continuation.resume()
        }
    }
}
