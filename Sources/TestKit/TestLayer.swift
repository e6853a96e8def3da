import NighCore

/// A layer that passes the messages of some kinds, or the streams for some purposes, to a closure.
package final class TestLayer: ConversationLayer {
    /// All kinds that there are.
    package static let allKinds = (1...UInt8.max).compactMap(MessageKind.init)

    package let kinds: [MessageKind]
    package let purposes: [StreamPurpose]
    private let onMessage: @Sendable (RawSpan, MessageKind, MessageOrigin) -> Void
    private let onStream: @Sendable (ByteStream) -> Void

    /// Takes messages of these kinds.
    package init(
        kinds: [MessageKind], _ onMessage: @escaping @Sendable (RawSpan, MessageKind, MessageOrigin) -> Void
    ) {
        self.kinds = kinds
        self.onMessage = onMessage
        purposes = []
        onStream = { _ in }
    }

    /// Takes streams for these purposes.
    package init(streams purposes: StreamPurpose..., onStream: @escaping @Sendable (ByteStream) -> Void) {
        self.purposes = purposes
        self.onStream = onStream
        kinds = []
        onMessage = { _, _, _ in }
    }

    package func receive(
        _ bytes: RawSpan, of kind: MessageKind, from origin: MessageOrigin
    ) -> KindMessagePlace? {
        onMessage(bytes, kind, origin)
        return nil
    }

    package func receive(_ stream: ByteStream) { onStream(stream) }
}
