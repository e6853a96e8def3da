/// A part that rides on the conversations of a session, such as files, groups or a recorder of links.
///
/// A session is made with a list of layers, in `SessionConfiguration.layers`. It asks each one for its `transports`
/// when it is made, then calls `attach`, and reports each event to the layers in the order of the list before it
/// reports the event to the program. When it closes, it goes through the list in reverse.
///
/// After `attach`, the session calls a layer on its loop only. A layer must not block the loop. It may call the
/// session, which keeps it until it has closed, so a layer keeps no strong reference to its session.
public protocol SessionLayer: AnyObject, Sendable {
    /// The transports that the layer brings, besides those that the session is given. Read once, before there is a
    /// session.
    var transports: [any Transport] { get }

    /// The layer's observer of the session's links, if it has one. Read once, when the session is made.
    var linkObserver: (any LinkObserver)? { get }

    /// Begins to follow a session that was just made and has not started.
    func attach(to session: Session)

    /// Handles an event. `closed` is no event here: see `sessionDidClose`.
    func handle(_ event: SessionEvent)

    /// Accepts or declines an invitation in place of the program, now or later, and returns true; or returns false. The
    /// first layer that returns true has it: neither another layer nor the program hears of the invitation.
    func answers(_ invitation: Invitation) -> Bool

    /// Called once when the session begins to close. Its conversations are still there.
    func sessionWillClose()

    /// Called once when the session has closed. Nothing is called afterwards.
    func sessionDidClose()
}

extension SessionLayer {
    /// Returns no transports.
    public var transports: [any Transport] { [] }
    /// Returns nil.
    public var linkObserver: (any LinkObserver)? { nil }
    /// Does nothing.
    public func attach(to session: Session) {}
    /// Does nothing.
    public func handle(_ event: SessionEvent) {}
    /// Returns false.
    public func answers(_ invitation: Invitation) -> Bool { false }
    /// Does nothing.
    public func sessionWillClose() {}
    /// Does nothing.
    public func sessionDidClose() {}
}

extension SessionLayer where Self: LinkObserver {
    /// The layer itself.
    public var linkObserver: (any LinkObserver)? { self }
}

/// A layer with messages of kinds or streams for purposes of its own. Peers learn from the hello which ones a session
/// takes. Of the layers of a session, one at most takes a kind or a purpose.
package protocol ConversationLayer: SessionLayer {
    /// The kinds of the messages that the layer takes. Read once.
    var kinds: [MessageKind] { get }

    /// Handles a message of one of its kinds, which is valid during the call, as in a `MessageHandler`. If the layer
    /// returns a place, the message is kept there until the program reads it, and counts as unread until then; any
    /// other counts as read.
    func receive(_ bytes: RawSpan, of kind: MessageKind, from origin: MessageOrigin) -> KindMessagePlace?

    /// The purposes of the streams that the layer takes. Read once.
    var purposes: [StreamPurpose] { get }

    /// Takes a stream that a peer has opened for one of its purposes.
    func receive(_ stream: ByteStream)
}

extension ConversationLayer {
    package var kinds: [MessageKind] { [] }
    package func receive(
        _ bytes: RawSpan, of kind: MessageKind, from origin: MessageOrigin
    ) -> KindMessagePlace? { nil }
    package var purposes: [StreamPurpose] { [] }
    package func receive(_ stream: ByteStream) {}
}

extension LayerCalls {
    /// Collects the calls of the layers; nil without layers. Fails if two take the same kind or purpose.
    convenience init?(_ layers: [any SessionLayer]) throws(NighError) {
        guard !layers.isEmpty else { return nil }
        var receivers = KindReceivers()
        var streams: [StreamPurpose: @Sendable (ByteStream) -> Void] = [:]
        for case let layer as any ConversationLayer in layers {
            for kind in layer.kinds {
                guard receivers.add(kind, { layer.receive($0, of: $1, from: $2) }) else {
                    throw Self.conflict(over: "messages of the kind \(kind.rawValue)")
                }
            }
            for purpose in layer.purposes {
                guard streams.updateValue({ layer.receive($0) }, forKey: purpose) == nil else {
                    throw Self.conflict(over: "streams for \(purpose)")
                }
            }
        }
        self.init(
            answers: { invitation in layers.contains { $0.answers(invitation) } },
            handle: { event in for layer in layers { layer.handle(event) } },
            willClose: { for layer in layers.reversed() { layer.sessionWillClose() } },
            didClose: { for layer in layers.reversed() { layer.sessionDidClose() } },
            observers: layers.compactMap(\.linkObserver), streams: streams, receivers: receivers)
    }

    private static func conflict(over subject: String) -> NighError {
        NighError(.configuring, .invalid("list of layers: two of them take \(subject)"))
    }
}
