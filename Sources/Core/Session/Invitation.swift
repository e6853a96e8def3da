/// Somebody asks for a conversation. Answer it with the session's `accept` or `decline`.
public struct Invitation: Hashable, Sendable {
    /// Unique within the session.
    public let number: UInt64
    /// Who asks.
    public let peer: Peer
    /// What the inviting program says.
    public let context: [UInt8]
    /// The scheme of the transport it came by.
    public let transport: String
}
