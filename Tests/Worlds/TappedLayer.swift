import NighCore

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
