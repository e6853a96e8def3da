/// The messages of all peers, each lane of a peer in the order sent, for one task at a time.
///
/// Bounded: a peer whose messages are not read is slowed down (`SessionLimits.receiveWindow`), independently of the
/// other peers. Ends when the session is closed, after everything that came has been read.
public struct MessageSequence: AsyncSequence, Sendable {
    let inbox: MessageInbox

    /// Ends the sequence. Messages that wait can still be read.
    package func finish() { inbox.finish() }

    /// Returns the next message without waiting, or nil if there is none now. Callable from any thread.
    public func poll() -> Message? { inbox.poll() }

    /// Waits for the next message. Returns nil if the session is closed and everything is read, or if the task is
    /// cancelled. It runs where its caller runs. If a message is there already, it returns without suspending.
    @inlinable
    @inline(__always)
    public nonisolated(nonsending) func next() async -> Message? {
        // Inlined, because a call of an asynchronous function takes several times as long as reading a message.
        if let message = poll() { return message }
        return await waitForNext()
    }

    @usableFromInline
    nonisolated(nonsending) func waitForNext() async -> Message? { await inbox.waitForNext() }

    /// Creates the iterator that `for await` uses.
    public func makeAsyncIterator() -> Iterator { Iterator(sequence: self) }

    /// An iterator over the messages.
    public struct Iterator: AsyncIteratorProtocol {
        @usableFromInline let sequence: MessageSequence

        /// Returns the next message, like the sequence's own `next`.
        @inlinable
        public nonisolated(nonsending) mutating func next() async -> Message? { await sequence.next() }

        /// Returns the next message, with the caller's isolation as `for await` states it.
        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Message? {
            await sequence.next()
        }
    }
}
