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

/// A layer whose messages are seen, and perhaps lost, before it gets them.
final class TappedLayer: ConversationLayer {
    private let layer: any ConversationLayer
    private let passes: @Sendable (RawSpan) -> Bool

    /// - Parameter passes: gets each message, and returns whether the layer gets it, too.
    init(_ layer: any ConversationLayer, passes: @escaping @Sendable (RawSpan) -> Bool) {
        self.layer = layer
        self.passes = passes
    }

    func receive(_ bytes: RawSpan, of kind: MessageKind, from origin: MessageOrigin) -> KindMessagePlace? {
        passes(bytes) ? layer.receive(bytes, of: kind, from: origin) : nil
    }

    // Everything else is as the layer has it.
    var transports: [any Transport] { layer.transports }
    var linkObserver: (any LinkObserver)? { layer.linkObserver }
    var kinds: [MessageKind] { layer.kinds }
    var purposes: [StreamPurpose] { layer.purposes }
    func receive(_ stream: ByteStream) { layer.receive(stream) }
    func attach(to session: Session) { layer.attach(to: session) }
    func handle(_ event: SessionEvent) { layer.handle(event) }
    func answers(_ invitation: Invitation) -> Bool { layer.answers(invitation) }
    func sessionWillClose() { layer.sessionWillClose() }
    func sessionDidClose() { layer.sessionDidClose() }
}
