import Synchronization

/// A queue from the loop to one reading task. The loop never waits; what bounds it is told by its owner.
///
/// The lock is held for a few memory operations, never while resuming anybody.
final class Inbox<Element: Sendable>: Sendable {
    private struct State {
        var waiting = Ring<Element>()
        /// Unchecked, which would take memory each time: whoever takes it out of here, with the lock held, resumes it, and
        /// nothing else sets it to nil.
        var reader: UnsafeContinuation<Bool, Never>?
        /// Which of those who came to wait `reader` is.
        var readerNumber: UInt64 = 0
        var isFinished = false
        var dropped = 0
    }

    private let state = Guarded(State())
    /// Counts those who came to wait.
    private let readersSeen = Atomic<UInt64>(0)

    /// Adds an element, and wakes the task that waits.
    func append(_ element: Element) {
        let reader = state.withLock { state -> UnsafeContinuation<Bool, Never>? in
            guard !state.isFinished else { return nil }
            state.waiting.append(element)
            return state.reader.take()
        }
        reader?.resume(returning: true)
    }

    /// Adds an element; where more than `limit` would wait, the oldest make room and are counted.
    func append(_ element: Element, droppingOldestBeyond limit: Int) {
        state.withLock { state in
            while state.waiting.count >= max(limit, 1) {
                state.waiting.popFirst()
                state.dropped += 1
            }
        }
        append(element)
    }

    /// How many elements were dropped since the last call.
    func takeDropped() -> Int {
        state.withLock { state in
            defer { state.dropped = 0 }
            return state.dropped
        }
    }

    /// Whether a task waits for the next element.
    var hasReader: Bool { state.withLock { $0.reader != nil } }

    /// The next element without waiting; nil when there is none now.
    func poll() -> Element? { state.withLock { $0.waiting.popFirst() } }

    /// Waits until `poll` may give something, which it does not have to where others poll too. False when the inbox is
    /// finished and empty, or the task is cancelled and there is nothing. For one task at a time: a second one that
    /// would have to wait too gets false at once.
    ///
    /// - Parameter isElsewhere: whether something was taken from here that is still to be read.
    nonisolated(nonsending) func wait(unless isElsewhere: () -> Bool = { false }) async -> Bool {
        let number = readersSeen.wrappingAdd(1, ordering: .relaxed).newValue
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    if !state.waiting.isEmpty || isElsewhere() { return true }
                    if state.isFinished || state.reader != nil || Task.isCancelled { return false }
                    state.reader = continuation
                    state.readerNumber = number
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            cancelReader(number)?.resume(returning: false)
        }
    }

    /// Takes reader `number` off its place, if it is the one that waits.
    private func cancelReader(_ number: UInt64) -> UnsafeContinuation<Bool, Never>? {
        state.withLock { state in state.readerNumber == number ? state.reader.take() : nil }
    }

    /// Nothing more will come; what waits can still be read.
    func finish() {
        let reader = state.withLock { state -> UnsafeContinuation<Bool, Never>? in
            state.isFinished = true
            return state.reader.take()
        }
        reader?.resume(returning: false)
    }
}
