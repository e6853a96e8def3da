/// The events of a session in order; for one task at a time.
///
/// Bounded by `SessionLimits.unreadEvents`: beyond it the oldest are dropped, and `.missed` tells how many. Ends after
/// `.closed`.
public struct EventSequence: AsyncSequence, Sendable {
    let inbox: Inbox<SessionEvent>

    /// The next event without waiting; nil when none is there now. Callable from any thread.
    public func poll() -> SessionEvent? { missed() ?? inbox.poll() }

    /// The next event; nil after the last, or when the task is cancelled.
    public nonisolated(nonsending) func next() async -> SessionEvent? {
        while true {
            if let event = poll() { return event }
            guard await inbox.wait() else { return nil }
        }
    }

    private func missed() -> SessionEvent? {
        let count = inbox.takeDropped()
        return count > 0 ? .missed(count) : nil
    }

    /// What `for await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(sequence: self) }

    /// Reads the sequence it was made from.
    public struct Iterator: AsyncIteratorProtocol {
        let sequence: EventSequence

        /// The next element, as the sequence's own `next` gives it.
        public mutating func next() async -> SessionEvent? { await sequence.next() }
    }
}
