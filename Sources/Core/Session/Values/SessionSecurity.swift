/// Which peers a session talks to, and how it verifies them.
public enum SessionSecurity: String, Hashable, Sendable, CaseIterable {
    /// Talks to any peer, over TLS 1.3: nobody can listen in, and the peer has proven the key whose hash is its PeerID.
    case encrypted
    /// Talks only to peers that were paired before, over TLS 1.3.
    case paired
    /// Talks to any peer without encryption: everybody on the way can read and change the data, and no peer proves
    /// anything. For measurements only; sessions of the other two kinds refuse it.
    case none
}
