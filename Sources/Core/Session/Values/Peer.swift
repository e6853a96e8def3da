/// Another session, as this session sees it now. A value: it does not change when the peer does.
public struct Peer: Hashable, Sendable, Identifiable {
    /// The peer's ID, which identifies it.
    public let id: PeerID
    /// The identity that the peer acts for: its own key, or that of a person who runs several programs. It is what is
    /// trusted, paired and remembered. Of a peer that was only seen so far it is what the peer announces; a connection
    /// fails if the peer does not prove it.
    public let identity: PeerID
    /// The display name of the peer: a label for people, which does not identify it.
    public let name: DisplayName
    /// The discovery info that the peer advertises.
    public let info: DiscoveryInfo
    /// Whether the peer advertises that it accepts no more peers, because it has as many as its `limits.peers` allows.
    /// It says nothing about a conversation that this session has with the peer.
    public let isFull: Bool
    /// The state of the peer in this session.
    public let state: PeerState
    /// The routes to the peer, the preferred one first.
    public let routes: [Route]
    /// The scheme of the transport that carries the conversation now; nil while there is no link. It changes without a
    /// change of state when the conversation moves to a better route; `SessionEvent.peerChanged` reports this.
    public let transport: String?
    /// Whether unreliable messages to the peer travel beside the link now, as packets that nothing delays.
    public let hasDatagrams: Bool
    /// The trust in the peer's identity. A peer without a connection has not proven the identity yet; it does so before
    /// anything else passes. Nil in a session without encryption, where no peer proves anything.
    public let trust: PeerTrust?

    /// An address at which the peer can be reached.
    public struct Route: Hashable, Sendable {
        /// The address to dial.
        public let address: TransportAddress
        /// How good the route looks, from 0 to 1, if the transport knows.
        public let quality: Double?
    }
}
