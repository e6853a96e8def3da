import NighCore

/// The messages of all peers. Each message goes to one reader, so use one loop for all of them. Messages that are not
/// read slow their senders down.
///
/// The sequence ends when the session is closed, after the last message was read.
public struct Messages: AsyncSequence, Sendable {
    @usableFromInline let low: NighCore.MessageSequence

    package init(_ low: NighCore.MessageSequence) { self.low = low }

    /// The next message; nil after the last, or if the task is cancelled.
    @inlinable
    public nonisolated(nonsending) func next() async -> Message? {
        guard let message = await low.next() else { return nil }
        return Message(message)
    }

    /// The next message if there is one now.
    @inlinable public func poll() -> Message? { low.poll().map(Message.init) }

    /// Makes the iterator that `for await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(messages: self) }

    /// Reads the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        @usableFromInline let messages: Messages

        init(messages: Messages) { self.messages = messages }

        /// The next message; nil after the last, or if the task is cancelled.
        @inlinable
        public nonisolated(nonsending) mutating func next() async -> Message? { await messages.next() }

        /// The next message, with the isolation of the caller, as `for await` asks for it.
        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Message? {
            await messages.next()
        }
    }
}

/// The messages of all peers as values of one type. A message that is no such value is left out and reported as
/// ``SessionEvent/messageUnreadable(_:_:)``.
public struct TypedMessages<Content: Decodable & Sendable>: AsyncSequence, Sendable {
    let session: SessionCore
    let messages: NighCore.MessageSequence

    /// Makes the iterator that `for await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(session: session, messages: messages) }

    /// Reads the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        let session: SessionCore
        let messages: NighCore.MessageSequence

        /// The next value, with the isolation of the caller, as `for await` asks for it.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> TypedMessage<Content>? {
            while let message = await messages.next() {
                let sender = session.peer(message.peer)
                do throws(NighError) {
                    let content = try MessageCoding.decode(
                        Content.self, from: message.payload, sender: sender)
                    return TypedMessage(sender: sender, content: content)
                } catch {
                    session.report(.messageUnreadable(sender, error))
                }
            }
            return nil
        }

        /// The next value; nil after the last, or if the task is cancelled.
        public mutating func next() async -> TypedMessage<Content>? { await next(isolation: nil) }
    }
}
