import NighCore

/// A peer's request for a conversation. Answer it with ``accept()`` or ``decline(because:retryAfter:)``.
public struct Invitation: Sendable {
    /// The peer that invites.
    public let peer: Peer
    /// The bytes that the peer's program sent with the invitation.
    public let context: [UInt8]

    private let low: NighCore.Invitation
    private let session: SessionCore

    init(_ low: NighCore.Invitation, in session: SessionCore) {
        peer = Peer(low.peer, in: session)
        context = low.context
        self.low = low
        self.session = session
    }

    /// Accepts the invitation. Does nothing if it has ended in the meantime.
    public func accept() { session.low.accept(low) }

    /// Declines the invitation.
    ///
    /// - Parameters:
    ///   - reason: A sentence for the person on the other side.
    ///   - retryAfter: The time after which the peer may ask again; zero to not say.
    public func decline(because reason: String = "", retryAfter: Duration = .zero) {
        session.low.decline(low, reason: reason, retryAfter: retryAfter)
    }
}
