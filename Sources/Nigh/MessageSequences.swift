import NighCore

/// The messages of all peers as values of one type. A message that is no such value is left out and reported as
/// ``SessionEvent/messageUnreadable(_:_:)``.
public struct TypedMessages<Content: Decodable & Sendable>: AsyncSequence, Sendable {
    /// The source of the messages.
    enum Source: Sendable {
        case session(MessageSequence)
        case channel(Channel)

        nonisolated(nonsending) func next() async -> Message? {
            switch self {
            case .session(let messages): await messages.next()
            case .channel(let channel): await channel.port.next()
            }
        }
    }

    let session: SessionReference
    let messages: Source

    /// Makes the iterator that `for await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(session: session, messages: messages) }

    /// Reads the sequence.
    public struct Iterator: AsyncIteratorProtocol {
        let session: SessionReference
        let messages: Source

        /// The next value, with the isolation of the caller, as `for await` asks for it.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> TypedMessage<Content>? {
            while let message = await messages.next() {
                let sender = session.peer(message.sender)
                do throws(NighError) {
                    let content = try session.decode(Content.self, from: message.payload, sender: sender)
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
