/// A queue from the loop to one reading task. The loop never waits; what bounds it is told by its owner.
///
/// The lock is held for a few memory operations, never while resuming anybody.
final class Inbox<Element: Sendable>: Sendable {
    private struct State {
        var waiting = Ring<Element>()
        var reader: CheckedContinuation<Element?, Never>?
        /// Counts those who came to wait.
        var readersSeen: UInt64 = 0
        /// Which of them `reader` is.
        var readerNumber: UInt64 = 0
        var isFinished = false
        var dropped = 0
    }

    private enum Outcome {
        case wait
        case give(Element?)
    }

    private let state = Guarded(State())

    /// Adds an element, or hands it to the task that waits.
    func append(_ element: Element) {
        let reader = state.withLock { state -> CheckedContinuation<Element?, Never>? in
            guard !state.isFinished else { return nil }
            guard let reader = state.reader else {
                state.waiting.append(element)
                return nil
            }
            state.reader = nil
            return reader
        }
        reader?.resume(returning: element)
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

    /// The next element, waiting for it where `poll` gave none; nil when the inbox is finished and empty, or the task is cancelled. For
    /// one task at a time: a second one that waits too gets nil at once.
    nonisolated(nonsending) func next() async -> Element? {
        let number = state.withLock { state in
            state.readersSeen += 1
            return state.readersSeen
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let outcome = state.withLock { state -> Outcome in
                    if let element = state.waiting.popFirst() { return .give(element) }
                    if state.isFinished || state.reader != nil || Task.isCancelled { return .give(nil) }
                    state.reader = continuation
                    state.readerNumber = number
                    return .wait
                }
                if case .give(let element) = outcome { continuation.resume(returning: element) }
            }
        } onCancel: {
            cancelReader(number)?.resume(returning: nil)
        }
    }

    /// Takes reader `number` off its place, if it is the one that waits.
    private func cancelReader(_ number: UInt64) -> CheckedContinuation<Element?, Never>? {
        state.withLock { state in
            guard state.readerNumber == number else { return nil }
            defer { state.reader = nil }
            return state.reader
        }
    }

    /// Nothing more will come; what waits can still be read.
    func finish() {
        let reader = state.withLock { state -> CheckedContinuation<Element?, Never>? in
            state.isFinished = true
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume(returning: nil)
    }
}
