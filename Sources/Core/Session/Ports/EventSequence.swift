/// The events of a session for one reader, in order. It begins with the present state: with problems, as
/// ``SessionEvent/transportDown(_:_:)`` and ``SessionEvent/problem(_:)``, with the addresses at which the session
/// listens, as ``SessionEvent/listening(scheme:_:)``, and with the peers that are known already, as
/// ``SessionEvent/peerFound(_:)`` and ``SessionEvent/connected(_:)``. It ends when the session is closed.
///
/// Bounded by ``SessionLimits/unreadEvents``: beyond it the oldest events are dropped, and
/// ``SessionEvent/eventsDropped(_:)`` tells how many.
public struct EventSequence: AsyncSequence, Sendable {
    let inbox: Inbox<SessionEvent>

    /// Returns the next event without waiting, or nil if there is none now. Callable from any thread.
    public func poll() -> SessionEvent? {
        let dropped = inbox.takeDropped()
        return dropped > 0 ? .eventsDropped(dropped) : inbox.poll()
    }

    /// Waits for the next event. Returns nil after the last event, or when the task is cancelled.
    public nonisolated(nonsending) func next() async -> SessionEvent? {
        while true {
            if let event = poll() { return event }
            guard await inbox.wait() else { return nil }
        }
    }

    /// Makes the iterator that `for await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(sequence: self) }

    /// Reads the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        let sequence: EventSequence

        /// The next event; nil after the last, or if the task is cancelled.
        public nonisolated(nonsending) mutating func next() async -> SessionEvent? { await sequence.next() }

        /// The next event, with the isolation of the caller, as `for await` asks for it.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> SessionEvent? {
            await sequence.next()
        }
    }
}
