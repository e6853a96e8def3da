/// A peer's request for a conversation. Answer it with `accept` or `decline`.
public struct Invitation: Hashable, Sendable {
    /// The number of the invitation, unique within the session.
    public let number: UInt64
    /// The peer that invites.
    public let peer: Peer
    /// The bytes that the peer's program sent with the invitation.
    public let context: [UInt8]
    /// The scheme of the transport over which the invitation came.
    public let transport: String
    /// The introducer's token that the peer has sent, not checked yet; empty without one.
    package let introduction: [UInt8]
}
