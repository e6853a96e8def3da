import MultipeerConnectivity

/// One side of a trial: it accepts every invitation into its present session, and counts events.
final class Party: NSObject, @unchecked Sendable {
    let id: MCPeerID
    let advertiser: MCNearbyServiceAdvertiser
    let browser: MCNearbyServiceBrowser
    let condition = NSCondition()

    // Under the lock.
    private(set) var session: MCSession
    private(set) var found: [MCPeerID] = []
    private(set) var connected = 0
    private(set) var ended = 0
    private(set) var contexts: [Data] = []

    // Set before the party is used.
    var accepts = true
    var onMessage: ((Data, MCPeerID) -> Void)?
    var onResource: ((URL) -> Void)?
    var onStream: ((InputStream, MCPeerID) -> Void)?

    init(_ name: String, service: String) {
        id = MCPeerID(displayName: name)
        session = MCSession(peer: id)
        advertiser = MCNearbyServiceAdvertiser(peer: id, discoveryInfo: nil, serviceType: service)
        browser = MCNearbyServiceBrowser(peer: id, serviceType: service)
        super.init()
        session.delegate = self
        advertiser.delegate = self
        browser.delegate = self
    }

    func change(_ body: () -> Void) {
        condition.withLock {
            body()
            condition.broadcast()
        }
    }

    /// Waits until the condition holds, at most this many seconds; returns whether it does.
    @discardableResult
    func wait(_ seconds: TimeInterval = 60, until isTrue: () -> Bool) -> Bool {
        let deadline = Date() + seconds
        condition.lock()
        defer { condition.unlock() }
        while !isTrue() { if !condition.wait(until: deadline) { return isTrue() } }
        return true
    }

    func start() {
        advertiser.startAdvertisingPeer()
        browser.startBrowsingForPeers()
    }

    /// Begins with a new session and new counts.
    func renew() {
        let made = MCSession(peer: id)
        made.delegate = self
        change {
            session = made
            connected = 0
            ended = 0
            contexts = []
        }
    }

    func connect(_ other: Party) -> Bool {
        wait { found.contains(other.id) }
        let before = (connected, other.connected)
        browser.invitePeer(other.id, to: session, withContext: nil, timeout: 30)
        return wait { connected == before.0 + 1 } && other.wait { other.connected == before.1 + 1 }
    }
}

extension Party: MCSessionDelegate {
    func session(_ session: MCSession, peer peerID: MCPeerID, didChange state: MCSessionState) {
        change {
            guard session === self.session else { return }
            if state == .connected { connected += 1 }
            if state == .notConnected { ended += 1 }
        }
    }

    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID) {
        onMessage?(data, peerID)
    }

    func session(
        _ session: MCSession, didReceive stream: InputStream, withName streamName: String,
        fromPeer peerID: MCPeerID
    ) { onStream?(stream, peerID) }

    func session(
        _ session: MCSession, didStartReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID, with progress: Progress
    ) {}

    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID, at localURL: URL?, withError error: (any Error)?
    ) { if let localURL { onResource?(localURL) } }
}

extension Party: MCNearbyServiceAdvertiserDelegate, MCNearbyServiceBrowserDelegate {
    func advertiser(
        _ advertiser: MCNearbyServiceAdvertiser, didReceiveInvitationFromPeer peerID: MCPeerID,
        withContext context: Data?, invitationHandler: @escaping (Bool, MCSession?) -> Void
    ) {
        var session: MCSession?
        change {
            if let context { contexts.append(context) }
            session = self.session
        }
        if accepts { invitationHandler(true, session) }
    }

    func browser(
        _ browser: MCNearbyServiceBrowser, foundPeer peerID: MCPeerID,
        withDiscoveryInfo info: [String: String]?
    ) { change { found.append(peerID) } }

    func browser(_ browser: MCNearbyServiceBrowser, lostPeer peerID: MCPeerID) {
        change { found.removeAll { $0 == peerID } }
    }
}
