import NighCore

/// Lets browsers find a peer, and receives their invitations.
open class MCNearbyServiceAdvertiser: NSObject {
    private let core: AdvertiserCore

    /// The peer that is advertised.
    public let myPeerID: MCPeerID
    /// The keys and values that browsers get together with the peer.
    public let discoveryInfo: [String: String]?
    /// The name of the service. Programs with equal names find each other.
    public let serviceType: String

    /// Creates an advertiser.
    ///
    /// - Parameters:
    ///   - info: Up to 396 bytes, with 2 bytes for each pair.
    ///   - serviceType: 1 to 15 letters, digits and hyphens. Case does not matter.
    public init(peer myPeerID: MCPeerID, discoveryInfo info: [String: String]?, serviceType: String) {
        self.myPeerID = myPeerID
        discoveryInfo = info
        self.serviceType = serviceType
        core = AdvertiserCore(myPeerID, info: info, service: ServiceType.checked(serviceType))
        super.init()
        core.owner = self
    }

    deinit {
        let core = core
        Control.async { core.stop() }
    }

    /// The object that is notified of invitations. The advertiser does not retain it.
    open var delegate: (any MCNearbyServiceAdvertiserDelegate)? {
        get { core.delegate.value as? any MCNearbyServiceAdvertiserDelegate }
        set { core.delegate.value = newValue }
    }

    /// Begins to advertise. Does nothing if it does already.
    open func startAdvertisingPeer() { Control.sync { core.start() } }

    /// Stops advertising. Sessions go on.
    open func stopAdvertisingPeer() { Control.sync { core.stop() } }
}

/// Receives the events of an advertiser, on a queue of the advertiser's own.
public protocol MCNearbyServiceAdvertiserDelegate: NSObjectProtocol {
    /// A peer invites this one. The handler may be called on any thread and at any time; the first call counts.
    func advertiser(
        _ advertiser: MCNearbyServiceAdvertiser, didReceiveInvitationFromPeer peerID: MCPeerID,
        withContext context: Data?, invitationHandler: @escaping (Bool, MCSession?) -> Void)

    /// The peer cannot be advertised.
    func advertiser(_ advertiser: MCNearbyServiceAdvertiser, didNotStartAdvertisingPeer error: any Error)
}

// Defaults for the methods that are optional in Apple's protocol.
extension MCNearbyServiceAdvertiserDelegate {
    /// Reports the error to the person.
    public func advertiser(
        _ advertiser: MCNearbyServiceAdvertiser, didNotStartAdvertisingPeer error: any Error
    ) {
        let name = advertiser.myPeerID.displayName
        NighMultipeer.report("\(name) cannot be advertised: \(error.localizedDescription)")
    }
}
