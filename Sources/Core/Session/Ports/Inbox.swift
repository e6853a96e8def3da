import Synchronization

/// A queue from the loop to one reading task. The loop never waits; the owner of the queue bounds it.
///
/// The lock is held for a few memory operations, never while a task is resumed.
///
/// Inlinable, because a queue of another module's elements would otherwise look up their type several times a call.
@usableFromInline
package final class Inbox<Element: Sendable>: Sendable {
    @usableFromInline
    struct State {
        @usableFromInline var waiting = Ring<Element>()
        /// An unsafe continuation, because a checked one would allocate memory each time. The code that takes it out of
        /// here, with the lock held, resumes it. Nothing else sets it to nil.
        @usableFromInline var reader: UnsafeContinuation<Bool, Never>?
        /// The number of the call of `wait` that `reader` belongs to.
        @usableFromInline var readerNumber: UInt64 = 0
        @usableFromInline var isFinished = false
        @usableFromInline var dropped = 0

        @usableFromInline
        init() {}
    }

    @usableFromInline let state = Guarded(State())
    /// Counts the calls of `wait`.
    @usableFromInline let readersSeen = Atomic<UInt64>(0)

    @inlinable
    package init() {}

    /// Appends an element, and wakes the task that waits. Returns how many elements wait now; nil if the inbox is
    /// finished, and takes none.
    @inlinable
    @discardableResult
    package func append(_ element: Element) -> Int? {
        let (reader, count) = state.withLock { state -> (UnsafeContinuation<Bool, Never>?, Int?) in
            guard !state.isFinished else { return (nil, nil) }
            state.waiting.append(element)
            return (state.reader.take(), state.waiting.count)
        }
        reader?.resume(returning: true)
        return count
    }

    /// Appends an element. If more than `limit` would wait, drops the oldest ones and counts them.
    @inlinable
    package func append(_ element: Element, droppingOldestBeyond limit: Int) {
        state.withLock { state in
            while state.waiting.count >= max(limit, 1) {
                state.waiting.popFirst()
                state.dropped += 1
            }
        }
        append(element)
    }

    /// Returns how many elements were dropped since the last call.
    @inlinable
    package func takeDropped() -> Int {
        state.withLock { state in
            defer { state.dropped = 0 }
            return state.dropped
        }
    }

    /// Whether a task waits for the next element.
    var hasReader: Bool { state.withLock { $0.reader != nil } }

    /// Returns the next element without waiting, or nil if there is none now.
    @inlinable
    package func poll() -> Element? { state.withLock { $0.waiting.popFirst() } }

    /// Removes and returns all elements that `isWanted` is true for, in order.
    func takeAll(where isWanted: (Element) -> Bool) -> [Element] {
        state.withLock { state in
            var taken: [Element] = []
            for _ in 0..<state.waiting.count {
                guard let element = state.waiting.popFirst() else { break }
                if isWanted(element) { taken.append(element) } else { state.waiting.append(element) }
            }
            return taken
        }
    }

    /// Waits for the next element. Returns nil if the inbox is finished and empty, or if the task is cancelled and
    /// there is nothing. Only one task may wait at a time; see `wait`.
    @inlinable
    package nonisolated(nonsending) func next() async -> Element? {
        while true {
            if let element = poll() { return element }
            guard await wait() else { return nil }
        }
    }

    /// Waits until `poll` may return an element. It may still return nil if others poll, too. Returns false if the
    /// inbox is finished and empty, or if the task is cancelled and there is nothing. Only one task may wait at a time:
    /// a second one that would have to wait gets false at once.
    ///
    /// - Parameter isElsewhere: whether something was taken from here that is still to be read.
    @inlinable
    package nonisolated(nonsending) func wait(unless isElsewhere: () -> Bool = { false }) async -> Bool {
        let number = readersSeen.wrappingAdd(1, ordering: .relaxed).newValue
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    if !state.waiting.isEmpty || isElsewhere() { return true }
                    if state.isFinished || Task.isCancelled { return false }
                    if state.reader != nil { return Self.secondReader() }
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

    /// Stops a program in a debug build: of two tasks that read one sequence, each would get a part.
    @usableFromInline
    static func secondReader() -> Bool {
        assertionFailure(
            "two tasks wait for the same sequence, and each would get only a part of it; read it in one")
        return false
    }

    /// Removes reader `number` if it is the one that waits, and returns its continuation.
    @inlinable
    func cancelReader(_ number: UInt64) -> UnsafeContinuation<Bool, Never>? {
        state.withLock { state in state.readerNumber == number ? state.reader.take() : nil }
    }

    /// Ends the queue. Elements that wait can still be read.
    @inlinable
    package func finish() {
        let reader = state.withLock { state -> UnsafeContinuation<Bool, Never>? in
            state.isFinished = true
            return state.reader.take()
        }
        reader?.resume(returning: false)
    }
}
