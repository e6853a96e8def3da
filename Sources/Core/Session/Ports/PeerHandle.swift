/// The part of a peer that its snapshots share until something of it changes: the properties of the peer, its session,
/// and the port of the conversation. So copying a peer counts one reference, and sending to it needs no search.
///
/// `@unchecked Sendable`: the port is read and written with the session's lock held, the place with that of its
/// reports; nothing else changes.
final class PeerHandle: @unchecked Sendable {
    let session: SessionReference
    let id: PeerID
    let identity: PeerID
    let name: DisplayName
    let info: DiscoveryInfo
    let isFull: Bool
    let routes: [Peer.Route]
    /// The port of the present conversation. Each conversation has a port of its own. It is only copied and replaced,
    /// with the lock held, so a run-time check for exclusive access would find nothing.
    @exclusivity(unchecked) private var openPort: PeerPort?
    /// Where the session's reports keep the peer.
    var place = Int.max

    init(
        in session: SessionReference, id: PeerID, identity: PeerID, name: DisplayName, info: DiscoveryInfo,
        isFull: Bool, routes: [Peer.Route], port: PeerPort? = nil
    ) {
        self.session = session
        self.id = id
        self.identity = identity
        self.name = name
        self.info = info
        self.isFull = isFull
        self.routes = routes
        openPort = port
    }

    /// A conversation has begun.
    func set(_ port: PeerPort) { session.handleLock.withLock { openPort = port } }

    /// The port of the conversation. Fails if there is none, or the session is closed.
    func port() throws(NighError) -> PeerPort {
        // A handle of an earlier snapshot may have the port of an earlier conversation, or none.
        if let port = session.handleLock.withLock({ openPort }), !port.hasEnded { return port }
        return try session.directory.port(of: id)
    }
}
