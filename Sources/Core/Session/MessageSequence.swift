/// The messages of all peers, each peer's lane in the order sent; for one task at a time.
///
/// Bounded: what is not read slows the senders down (`SessionLimits.receiveWindow`), each for itself. Ends when the
/// session is closed, after everything that came has been read.
public struct MessageSequence: AsyncSequence, Sendable {
    let inbox: MessageInbox

    /// The next message without waiting; nil when none is there now. Callable from any thread.
    public func poll() -> Message? { inbox.poll() }

    /// The next message; nil when the session is closed and everything is read, or the task is cancelled. It runs where
    /// its caller runs, and where a message is there already it does not wait for anybody's turn.
    public nonisolated(nonsending) func next() async -> Message? {
        if let message = inbox.poll() { return message }
        return await inbox.waitForNext()
    }

    /// What `for await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(sequence: self) }

    /// Reads the sequence it was made from.
    public struct Iterator: AsyncIteratorProtocol {
        let sequence: MessageSequence

        /// The next element, as the sequence's own `next` gives it.
        public nonisolated(nonsending) mutating func next() async -> Message? { await sequence.next() }

        /// The same, with the caller's isolation as `for await` states it.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Message? {
            await sequence.next()
        }
    }
}
