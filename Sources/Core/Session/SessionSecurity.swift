/// Whom a session talks to, and how it makes sure of that.
public enum SessionSecurity: String, Hashable, Sendable, CaseIterable {
    /// With any peer, over TLS 1.3: nobody listens in, and the peer has proven the key its PeerID is the hash of.
    case encrypted
    /// The same, with peers only that were paired before.
    case paired
    /// With any peer, readable and changeable by everybody on the way, and nobody proves anything. For measurements; refused by
    /// sessions of the other two kinds.
    case none
}
