/// Another session of the same service, as this session last saw it.
///
/// A peer is a snapshot: its properties do not change. Its methods act on the peer as it is now. Two snapshots of one
/// peer are equal.
public struct Peer: Identifiable, Sendable {
    let handle: PeerHandle
    /// Whether the peer can be reached, is being connected, or is connected.
    public let state: PeerState
    /// The transport that carries the conversation now, for example "tcp"; nil while there is no link. It changes
    /// without a change of state when the conversation moves to a better route; the event `peerChanged` reports this.
    public let transport: String?
    /// Whether unreliable messages travel as datagrams now, which nothing delays.
    public let hasDatagrams: Bool
    /// The trust in the peer's identity, from this user's trust store. A peer without a connection has not proven the
    /// identity yet; it does so before anything else passes. Nil in a session without encryption, where no peer proves
    /// anything.
    public let trust: PeerTrust?

    /// An address at which a peer can be reached.
    public struct Route: Hashable, Sendable {
        /// The address to dial.
        public let address: TransportAddress
        /// How good the route looks, from 0 to 1, if the transport knows.
        public let quality: Double?
    }
}

extension Peer {
    /// The hash of the session's public key. No two sessions have the same.
    public var id: PeerID { handle.id }

    /// The identity that the peer acts for, which stays the same when the peer restarts or changes its name. It differs
    /// from `id` if a person runs several programs of one service: all of them act for one identity, and are trusted as
    /// that identity is. Of a peer that was only seen so far it is the announced identity; a connection fails if the
    /// peer does not prove it.
    public var identity: PeerID { handle.identity }

    /// The name that the peer shows to people. Two peers may have the same name.
    public var name: String { handle.name.description }

    /// The name, as the session has checked it.
    package var displayName: DisplayName { handle.name }

    /// The keys and values that the peer advertises about itself.
    public var info: [String: String] { handle.info.pairs }

    /// The info that the peer advertises, as the session has checked it.
    package var discoveryInfo: DiscoveryInfo { handle.info }

    /// Whether the peer advertises that it is full: it has as many peers as its `limits.peers` allows, and refuses
    /// further invitations. A conversation that this session has with the peer is not affected.
    public var isFull: Bool { handle.isFull }

    /// The routes to the peer, the preferred one first.
    public var routes: [Route] { handle.routes }

    /// Whether messages can be sent to the peer now. During a reconnection they wait until there is a link again.
    public var isConnected: Bool { state == .connected || state == .reconnecting }

    /// Creates a peer that the session does not know, or knows only from other peers.
    ///
    /// - Parameter advertisement: the one that other peers give for it; nil if none does.
    init(unknown id: PeerID, advertisement: Advertisement?, trust: PeerTrust?, in session: SessionReference) {
        handle = PeerHandle(
            in: session, id: id, identity: advertisement?.identity ?? id,
            name: advertisement?.name ?? DisplayName(fitting: id.short), info: advertisement?.info ?? .none,
            isFull: advertisement?.isFull ?? false, routes: [])
        state = .unavailable
        transport = nil
        hasDatagrams = false
        self.trust = trust
    }
}

extension Peer: Hashable {
    /// Whether both are snapshots of the same peer.
    public static func == (left: Peer, right: Peer) -> Bool { left.id == right.id }

    /// Hashes the ID.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}
