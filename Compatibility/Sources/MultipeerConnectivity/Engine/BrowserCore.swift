import NighCore

/// The implementation of `MCNearbyServiceBrowser`.
///
/// `@unchecked Sendable`: `owner` is set once, and everything that changes is confined to the control queue.
final class BrowserCore: @unchecked Sendable {
    weak var owner: MCNearbyServiceBrowser?
    let delegate = DelegateBox()
    private let local: MCPeerID
    private let service: String
    private let queue = DispatchQueue(label: "nigh.multipeer.browser.delegate")
    private var engine: Engine?
    /// Whether a failure was reported since the last start.
    private var hasFailed = false
    /// The peers that were reported as found, which keeps the objects.
    private var found: [PeerID: MCPeerID] = [:]

    /// The timeout of invitations that have none of their own.
    private let defaultTimeout = NighMultipeer.settings.invitationTime / .seconds(1)

    init(_ local: MCPeerID, service: String) {
        self.local = local
        self.service = service
    }

    func start() {
        guard engine == nil else { return }
        hasFailed = false
        do throws(NighError) {
            let engine = try EngineDirectory.engine(of: local, service: service)
            self.engine = engine
            engine.add(self)
        } catch {
            failed(error)
        }
    }

    func stop() {
        engine?.remove(self)
        engine = nil
        found = [:]
    }

    func failed(_ error: NighError) {
        guard !hasFailed else { return }
        hasFailed = true
        let error = MCError(error)
        notify { $1.browser($0, didNotStartBrowsingForPeers: error) }
    }

    func found(_ peer: EnginePeer) {
        let peerID = peer.peerID
        found[peer.id] = peerID
        let (kept, info) = (Handover(peerID), peer.info)
        notify { $1.browser($0, foundPeer: kept.value, withDiscoveryInfo: info) }
    }

    func lost(_ peer: EnginePeer) {
        guard let peerID = found.removeValue(forKey: peer.id) else { return }
        let kept = Handover(peerID)
        notify { $1.browser($0, lostPeer: kept.value) }
    }

    /// Invites a peer, also while the browser is stopped.
    func invite(_ peer: KnownPeer, to session: SessionCore, context: Data?, timeout: TimeInterval) {
        guard let engine = try? engine ?? EngineDirectory.engine(of: local, service: service) else {
            return session.notify(MCPeerID(peer), .notConnected)
        }
        engine.peer(peer.id, named: peer.name)
        session.invite(
            peer.id, in: engine, context: context.map { Array($0) },
            timeout: timeout > 0 ? min(timeout, Engine.longestInvitation) : defaultTimeout)
    }

    private func notify(
        _ call: @escaping @Sendable (MCNearbyServiceBrowser, any MCNearbyServiceBrowserDelegate) -> Void
    ) {
        queue.async {
            guard let owner = self.owner, let delegate = owner.delegate else { return }
            call(owner, delegate)
        }
    }
}
