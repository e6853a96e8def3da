/// Streams, offers of files and the like that peers bring the program, in the order in which they come. Each goes to
/// one reader, so use one loop for all of them. The sequence ends when the session is closed.
public struct Incoming<Element: Sendable>: AsyncSequence, Sendable {
    package let inbox: Inbox<Element>

    package init() { inbox = Inbox() }

    /// Makes the iterator that `for await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(inbox: inbox) }

    /// Reads the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        let inbox: Inbox<Element>

        /// The next element, with the isolation of the caller, as `for await` asks for it.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            await inbox.next()
        }

        /// The next element; nil after the last, or if the task is cancelled.
        public mutating func next() async -> Element? { await next(isolation: nil) }
    }
}
