import Nigh
import NighCalls
import NighCore
import Synchronization

/// A sequence of values that an actor returns, or gets as an argument, and that is read at the other side.
///
///     distributed func moves() -> RemoteStream<Move> { RemoteStream(history.moves) }
///
/// The values travel in a stream of their own. A reader that is slow slows the sequence down, and one that stops
/// reading ends it. The end of the sequence, or the error that it throws, arrives behind its last value. If the
/// conversation ends before, reading fails. Read it once.
public struct RemoteStream<Element: Codable & Sendable>: AsyncSequence, Sendable {
    typealias Pull = () async throws -> Element?

    private let makePull: @Sendable () -> Pull

    /// Makes a stream of the elements of a sequence, which begins to be read when the call has returned.
    public init<Elements: AsyncSequence & Sendable>(_ elements: Elements)
    where Elements.Element == Element {
        makePull = {
            var iterator = elements.makeAsyncIterator()
            return { try await iterator.next() }
        }
    }

    /// Makes the iterator that `for try await` reads with.
    public func makeAsyncIterator() -> Iterator { Iterator(pull: makePull()) }

    /// Reads the stream.
    public struct Iterator: AsyncIteratorProtocol {
        let pull: Pull

        /// The next value; nil after the last.
        public mutating func next() async throws -> Element? { try await pull() }
    }
}

extension RemoteStream: Codable {
    /// Notes that the stream is to be sent. Fails outside of the calls of actors.
    public func encode(to encoder: any Encoder) throws {
        guard let values = encoder.userInfo[ValueContext.key] as? ValueContext else {
            throw EncodingError.invalidValue(
                self,
                .init(codingPath: encoder.codingPath, debugDescription: "only a call can carry a stream")
            )
        }
        let number = values.system.newStreamNumber()
        let context = ValueContext(values.system)
        values.add(
            OutgoingStream(number: number, original: self) { [makePull] send in
                let pull = makePull()
                while let element = try await pull() {
                    let writer = CBORSequenceWriter(in: context)
                    try writer.append(element)
                    try await send(writer.bytes)
                }
            })
        var container = encoder.singleValueContainer()
        try container.encode(number)
    }

    /// Finds the stream that the peer has opened for it.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let number = try container.decode(UInt64.self)
        let values = decoder.userInfo[ValueContext.key] as? ValueContext
        if let own = values?.ownStream(number) as? RemoteStream {
            self = own
            return
        }
        guard let values, let peer = values.peer else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "only a call can carry a stream")
        }
        let system = values.system
        let incoming = system.expectStream(number, of: peer)
        makePull = {
            { @Sendable in
                guard let bytes = try await incoming.next(system) else { return nil }
                let values = ValueContext(system, peer: peer)
                var reader = try CBORSequenceReader(bytes, in: values)
                return try reader.next(Element.self)
            }
        }
    }
}
