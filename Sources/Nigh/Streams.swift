import NighCore

/// The streams that peers open. Each stream goes to one reader, so use one loop for all of them.
///
/// A stream that nobody has taken waits, and so does its writer. If more than 1,024 wait, the oldest is cancelled. The
/// sequence ends when the session is closed.
public struct Streams: AsyncSequence, Sendable {
    let inbox: Inbox<ByteStream>

    /// The number of streams that wait for a reader.
    static let limit = 1_024

    /// Makes the iterator that `for await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(inbox: inbox) }

    /// Reads the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        let inbox: Inbox<ByteStream>

        /// The next stream, with the isolation of the caller, as `for await` asks for it.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> ByteStream? {
            await inbox.next()
        }

        /// The next stream; nil after the last, or if the task is cancelled.
        public mutating func next() async -> ByteStream? { await next(isolation: nil) }
    }
}
