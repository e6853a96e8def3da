import NighCore

/// Finds the peers that are advertised, and invites them.
open class MCNearbyServiceBrowser: NSObject {
    private let core: BrowserCore

    /// The peer that browses. It does not find itself.
    public let myPeerID: MCPeerID
    /// The name of the service. Programs with equal names find each other.
    public let serviceType: String

    /// Creates a browser.
    ///
    /// - Parameter serviceType: 1 to 15 letters, digits and hyphens. Case does not matter.
    public init(peer myPeerID: MCPeerID, serviceType: String) {
        self.myPeerID = myPeerID
        self.serviceType = serviceType
        core = BrowserCore(myPeerID, service: ServiceType.checked(serviceType))
        super.init()
        core.owner = self
    }

    deinit {
        let core = core
        Control.async { core.stop() }
    }

    /// The object that is notified of peers that come and go. The browser does not retain it.
    open var delegate: (any MCNearbyServiceBrowserDelegate)? {
        get { core.delegate.value as? any MCNearbyServiceBrowserDelegate }
        set { core.delegate.value = newValue }
    }

    /// Begins to look for peers. Does nothing if it does already.
    open func startBrowsingForPeers() { Control.sync { core.start() } }

    /// Stops looking for peers. Sessions and invitations go on.
    open func stopBrowsingForPeers() { Control.sync { core.stop() } }

    /// Invites a peer to a session, also if it was found earlier and the browser is stopped. The delegate of the
    /// session learns how it ends.
    ///
    /// - Parameters:
    ///   - context: Data for the other program, with the invitation.
    ///   - timeout: The seconds that everything may take; 30, or `invitationTime` of Nigh's settings, if it is not more
    ///     than 0.
    open func invitePeer(
        _ peerID: MCPeerID, to session: MCSession, withContext context: Data?, timeout: TimeInterval
    ) {
        let session = session.core
        Control.sync { core.invite(peerID.known, to: session, context: context, timeout: timeout) }
    }
}

/// Receives the events of a browser, on a queue of the browser's own.
public protocol MCNearbyServiceBrowserDelegate: NSObjectProtocol {
    /// There is a peer.
    func browser(
        _ browser: MCNearbyServiceBrowser, foundPeer peerID: MCPeerID,
        withDiscoveryInfo info: [String: String]?)

    /// A peer that was found is no longer advertised, or gone.
    func browser(_ browser: MCNearbyServiceBrowser, lostPeer peerID: MCPeerID)

    /// Peers cannot be found.
    func browser(_ browser: MCNearbyServiceBrowser, didNotStartBrowsingForPeers error: any Error)
}

// Defaults for the methods that are optional in Apple's protocol.
extension MCNearbyServiceBrowserDelegate {
    /// Reports the error to the person.
    public func browser(_ browser: MCNearbyServiceBrowser, didNotStartBrowsingForPeers error: any Error) {
        let service = browser.serviceType
        NighMultipeer.report("peers of \(service) cannot be found: \(error.localizedDescription)")
    }
}
