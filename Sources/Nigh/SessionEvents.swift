import NighCore

/// The events of a session for one reader, in order. The reader first gets what does not work now, as
/// ``SessionEvent/transportDown(_:_:)`` and ``SessionEvent/problem(_:)``, and the peers that are known already, as
/// ``SessionEvent/peerFound(_:)`` and ``SessionEvent/connected(_:)``. The sequence ends when the session is closed.
public struct SessionEvents: AsyncSequence, Sendable {
    let subscription: Subscription

    /// Makes the iterator that `for await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(subscription: subscription) }

    /// Reads the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: Subscription

        /// The next event, with the isolation of the caller, as `for await` asks for it.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> SessionEvent? {
            await subscription.next()
        }

        /// The next event; nil after the last, or if the task is cancelled.
        public mutating func next() async -> SessionEvent? { await next(isolation: nil) }
    }

    /// One reader's queue, which the session holds weakly.
    final class Subscription: Sendable {
        /// The number of events that wait for a slow reader.
        private static let limit = 1_024

        private let inbox = Inbox<SessionEvent>()

        func append(_ event: SessionEvent) { inbox.append(event, droppingOldestBeyond: Self.limit) }

        func finish() { inbox.finish() }

        nonisolated(nonsending) func next() async -> SessionEvent? {
            while true {
                let dropped = inbox.takeDropped()
                if dropped > 0 { return .eventsDropped(dropped) }
                if let event = inbox.poll() { return event }
                guard await inbox.wait() else { return nil }
            }
        }
    }
}
