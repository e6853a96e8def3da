/// Somebody else's session, as this one sees it now. A value: it does not change when the peer does.
public struct Peer: Hashable, Sendable, Identifiable {
    /// Who it is.
    public let id: PeerID
    /// What it calls itself; a label, by which nobody is told apart.
    public let name: DisplayName
    /// What it advertises.
    public let info: DiscoveryInfo
    /// How this session stands with it.
    public let state: PeerState
    /// The ways to it, the preferred first.
    public let routes: [Route]
    /// The scheme of the transport that carries the conversation now; nil while there is no link. It changes without a
    /// change of state when the conversation moves to a better route; `SessionEvent.peerChanged` tells it.
    public let transport: String?
    /// What is known about its key. Whoever was only seen so far has yet to prove that the key is theirs, and does so before
    /// anything else passes. Nil in a session without encryption, where nobody proves anything.
    public let trust: PeerTrust?

    /// One way to reach a peer.
    public struct Route: Hashable, Sendable {
        /// Where to dial.
        public let address: TransportAddress
        /// How good it looks, 0 to 1, where the transport can tell.
        public let quality: Double?
    }
}
