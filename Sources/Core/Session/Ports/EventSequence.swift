/// The events of a session in order, for one task at a time.
///
/// Bounded by `SessionLimits.unreadEvents`: beyond it the oldest events are dropped, and `.eventsDropped` reports how
/// many. Ends after `.closed`.
public struct EventSequence: AsyncSequence, Sendable {
    let inbox: Inbox<SessionEvent>

    /// Returns the next event without waiting, or nil if there is none now. Callable from any thread.
    public func poll() -> SessionEvent? { eventsDropped() ?? inbox.poll() }

    /// Waits for the next event. Returns nil after the last event, or when the task is cancelled.
    public nonisolated(nonsending) func next() async -> SessionEvent? {
        while true {
            if let event = poll() { return event }
            guard await inbox.wait() else { return nil }
        }
    }

    private func eventsDropped() -> SessionEvent? {
        let count = inbox.takeDropped()
        return count > 0 ? .eventsDropped(count) : nil
    }

    /// Creates the iterator that `for await` uses.
    public func makeAsyncIterator() -> Iterator { Iterator(sequence: self) }

    /// An iterator over the events.
    public struct Iterator: AsyncIteratorProtocol {
        let sequence: EventSequence

        /// Returns the next event, like the sequence's own `next`.
        public nonisolated(nonsending) mutating func next() async -> SessionEvent? { await sequence.next() }

        /// Returns the next event, with the caller's isolation as `for await` states it.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> SessionEvent? {
            await sequence.next()
        }
    }
}
