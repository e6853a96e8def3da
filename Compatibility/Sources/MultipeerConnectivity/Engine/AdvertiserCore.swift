import NighCore

/// The implementation of `MCNearbyServiceAdvertiser`.
///
/// `@unchecked Sendable`: `owner` is set once, and everything that changes is confined to the control queue.
final class AdvertiserCore: @unchecked Sendable {
    weak var owner: MCNearbyServiceAdvertiser?
    let delegate = DelegateBox()
    let info: [String: String]?
    private let local: MCPeerID
    private let service: String
    private let queue = DispatchQueue(label: "nigh.multipeer.advertiser.delegate")
    private var engine: Engine?
    /// Whether a failure was reported since the last start.
    private var hasFailed = false

    init(_ local: MCPeerID, info: [String: String]?, service: String) {
        self.local = local
        self.info = info
        self.service = service
    }

    func start() {
        guard engine == nil else { return }
        hasFailed = false
        do throws(NighError) {
            _ = try DiscoveryInfo(Announcement.pairs(.visible(info), name: local.displayName))
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
    }

    func failed(_ error: NighError) {
        guard !hasFailed else { return }
        hasFailed = true
        let error = MCError(error)
        notify { $1.advertiser($0, didNotStartAdvertisingPeer: error) }
    }

    func invited(by peer: MCPeerID, context: Data?, _ answer: InvitationAnswer) {
        let peer = Handover(peer)
        notify {
            $1.advertiser($0, didReceiveInvitationFromPeer: peer.value, withContext: context) {
                accepts, session in
                answer.give(accepts, session?.core)
            }
        }
    }

    private func notify(
        _ call: @escaping @Sendable (MCNearbyServiceAdvertiser, any MCNearbyServiceAdvertiserDelegate) -> Void
    ) {
        queue.async {
            guard let owner = self.owner, let delegate = owner.delegate else { return }
            call(owner, delegate)
        }
    }
}
