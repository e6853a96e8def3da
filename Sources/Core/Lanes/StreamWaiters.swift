/// Tasks that wait for the same thing of a stream.
///
/// A task is resumed after the lock of the stream is released: cancelling the task takes that lock while the runtime
/// holds a lock of the task, which resuming it needs.
struct StreamWaiters {
    private struct Waiter {
        let number: UInt64
        let continuation: UnsafeContinuation<Void, Never>
    }

    /// Mostly there is one, which needs no memory of its own.
    private var first: Waiter?
    private var others: [Waiter] = []

    var isEmpty: Bool { first == nil }

    mutating func append(_ number: UInt64, _ continuation: UnsafeContinuation<Void, Never>) {
        append(Waiter(number: number, continuation: continuation))
    }

    private mutating func append(_ waiter: Waiter) {
        if first == nil { first = waiter } else { others.append(waiter) }
    }

    /// Removes the task with this number, which the caller resumes; returns nil if it does not wait any more.
    mutating func remove(_ number: UInt64) -> UnsafeContinuation<Void, Never>? {
        if let waiter = first, waiter.number == number {
            first = others.isEmpty ? nil : others.removeFirst()
            return waiter.continuation
        }
        return others.firstIndex { $0.number == number }.map { others.remove(at: $0).continuation }
    }

    /// Moves the tasks of `waiters` behind those of this list.
    mutating func take(from waiters: inout StreamWaiters) {
        guard let waiter = waiters.first.take() else { return }
        append(waiter)
        guard !waiters.others.isEmpty else { return }
        others += waiters.others
        waiters.others = []
    }

    /// Resumes all tasks. Must not be called with the lock of the stream held.
    consuming func resume() {
        guard let first else { return }
        first.continuation.resume()
        for waiter in others { waiter.continuation.resume() }
    }
}
