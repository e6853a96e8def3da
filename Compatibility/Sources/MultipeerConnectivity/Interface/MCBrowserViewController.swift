/// Lets a person invite peers into a session.
///
/// There is no view here. `NighMultipeer.presenter` shows `peers` and calls `invite`, `finish` and `cancel`; a program
/// may do the same itself.
open class MCBrowserViewController: NSObject, MCNearbyServiceBrowserDelegate {
    /// The browser that finds the peers.
    public let browser: MCNearbyServiceBrowser?
    /// The session that peers are invited into.
    public let session: MCSession
    /// How many peers, oneself included, must be connected for `finish`.
    open var minimumNumberOfPeers = kMCSessionMinimumNumberOfPeers
    /// How many peers, oneself included, may be invited.
    open var maximumNumberOfPeers = kMCSessionMaximumNumberOfPeers

    private let delegateBox = DelegateBox()
    private let lock = NSLock()
    private var found: [(peer: MCPeerID, info: [String: String]?)] = []
    private var states: [MCPeerID: MCSessionState] = [:]

    /// Creates a controller with a browser of its own.
    public convenience init(serviceType: String, session: MCSession) {
        self.init(
            browser: MCNearbyServiceBrowser(peer: session.myPeerID, serviceType: serviceType),
            session: session)
    }

    /// Creates a controller for a browser, whose delegate it becomes.
    public init(browser: MCNearbyServiceBrowser, session: MCSession) {
        self.browser = browser
        self.session = session
        super.init()
        browser.delegate = self
        // It reads from other threads the state that the lock protects.
        nonisolated(unsafe) weak let controller = self
        session.core.watchers.withLock {
            $0[ObjectIdentifier(self)] = { controller?.note($1, of: $0) }
        }
        for peer in session.connectedPeers { lock.withLock { states[peer] = states[peer] ?? .connected } }
    }

    deinit { session.core.watchers.withLock { $0[ObjectIdentifier(self)] = nil } }

    /// The object that is notified of the person's choice. The controller does not retain it.
    open var delegate: (any MCBrowserViewControllerDelegate)? {
        get { delegateBox.value as? any MCBrowserViewControllerDelegate }
        set { delegateBox.value = newValue }
    }

    // MARK: For presenters

    /// Begins to browse, and has the presenter show this. Apple's controller does so when it is presented.
    open func show() {
        // So that the browser finds everybody anew, also if it was browsing already.
        browser?.stopBrowsingForPeers()
        lock.withLock { found = [] }
        browser?.startBrowsingForPeers()
        NighMultipeer.presenter?.show(self)
    }

    /// The peers that are there now, in the order in which they came.
    open var peers: [MCPeerID] { lock.withLock { found.map(\.peer) } }

    /// The keys and values that a peer advertises.
    open func discoveryInfo(of peer: MCPeerID) -> [String: String]? {
        lock.withLock { found.first { $0.peer == peer }?.info }
    }

    /// The state of a peer: `.connecting` from the invitation on, `.notConnected` if that led to nothing or is over,
    /// nil for a peer that has nothing to do with the session.
    open func state(of peer: MCPeerID) -> MCSessionState? { lock.withLock { states[peer] } }

    private func note(_ state: MCSessionState, of peer: MCPeerID) {
        lock.withLock { states[peer] = state }
        NighMultipeer.presenter?.update(self)
    }

    /// Invites a peer. Returns false if the maximum number of peers is reached.
    @discardableResult
    open func invite(_ peer: MCPeerID, context: Data? = nil) -> Bool {
        guard session.connectedPeers.count < maximumNumberOfPeers - 1 else { return false }
        if state(of: peer) != .connected { note(.connecting, of: peer) }
        browser?.invitePeer(peer, to: session, withContext: context, timeout: 0)
        return true
    }

    /// The person is done. Returns false if there are too few peers.
    @discardableResult
    open func finish() -> Bool {
        guard session.connectedPeers.count >= minimumNumberOfPeers - 1 else { return false }
        browser?.stopBrowsingForPeers()
        delegate?.browserViewControllerDidFinish(self)
        return true
    }

    /// The person does not want to.
    open func cancel() {
        browser?.stopBrowsingForPeers()
        delegate?.browserViewControllerWasCancelled(self)
    }

    // MARK: The browser's delegate

    /// Adds a peer to the list, unless the delegate does not want it there.
    open func browser(
        _ browser: MCNearbyServiceBrowser, foundPeer peerID: MCPeerID,
        withDiscoveryInfo info: [String: String]?
    ) {
        let isWanted =
            delegate?.browserViewController(self, shouldPresentNearbyPeer: peerID, withDiscoveryInfo: info)
            ?? true
        guard isWanted else { return }
        lock.withLock {
            found.removeAll { $0.peer == peerID }
            found.append((peerID, info))
        }
        NighMultipeer.presenter?.update(self)
    }

    /// Removes a peer from the list.
    open func browser(_ browser: MCNearbyServiceBrowser, lostPeer peerID: MCPeerID) {
        lock.withLock { found.removeAll { $0.peer == peerID } }
        NighMultipeer.presenter?.update(self)
    }
}

/// Receives the events of a controller.
public protocol MCBrowserViewControllerDelegate: NSObjectProtocol {
    /// The person has chosen.
    func browserViewControllerDidFinish(_ browserViewController: MCBrowserViewController)
    /// The person has cancelled.
    func browserViewControllerWasCancelled(_ browserViewController: MCBrowserViewController)
    /// Whether a peer is shown.
    func browserViewController(
        _ browserViewController: MCBrowserViewController, shouldPresentNearbyPeer peerID: MCPeerID,
        withDiscoveryInfo info: [String: String]?
    ) -> Bool
}

// Defaults for the methods that are optional in Apple's protocol.
extension MCBrowserViewControllerDelegate {
    /// Shows every peer.
    public func browserViewController(
        _ browserViewController: MCBrowserViewController, shouldPresentNearbyPeer peerID: MCPeerID,
        withDiscoveryInfo info: [String: String]?
    ) -> Bool { true }
}
