import MultipeerConnectivity
import Testing

/// A device as programs build it: a peer with a session, an advertiser and a browser. It records the calls of its
/// delegates.
final class Device: NSObject, @unchecked Sendable {
    enum Event: Equatable {
        case state(MCPeerID, MCSessionState)
        case message(MCPeerID, Data)
        case invitation(MCPeerID, Data?)
        case found(MCPeerID, [String: String]?)
        case lost(MCPeerID)
        case failed
        case stream(MCPeerID, String)
        case began(MCPeerID, String)
        case resource(MCPeerID, String, Data?)
    }

    /// The device's answer to an invitation.
    enum Answer {
        case accept
        case decline
        case nothing
        /// Keeps the handler in `handlers`.
        case keep
    }

    /// The timeout of invitations that no test wants to end by it, however busy the machine is.
    static let patience: TimeInterval = 600

    let id: MCPeerID
    let session: MCSession
    let service: String
    let advertiser: MCNearbyServiceAdvertiser
    let browser: MCNearbyServiceBrowser

    private let log: Watched<[Event]>

    // Set before the device is used.
    var answer = Answer.accept
    var invitationSession: MCSession?
    var certificateAnswer: (([Any]?, @escaping (Bool) -> Void) -> Void)?
    var onMessage: ((Data, MCPeerID) -> Void)?
    var onState: ((MCPeerID, MCSessionState) -> Void)?
    var onStream: ((InputStream, String, MCPeerID) -> Void)?
    var onProgress: ((Progress) -> Void)?
    var onResource: ((URL?, (any Error)?) -> Void)?
    private(set) var handlers: [(Bool, MCSession?) -> Void] = []
    private(set) var errors: [any Error] = []

    init(
        _ name: String, service: String, info: [String: String]? = nil, id: MCPeerID? = nil,
        certificates: [Any]? = nil
    ) {
        _ = transportsAreChosen
        let peer = id ?? MCPeerID(displayName: name)
        giveAdapter(to: peer)
        self.id = peer
        self.service = service
        log = Watched([], of: name)
        session = MCSession(peer: peer, securityIdentity: certificates, encryptionPreference: .required)
        advertiser = MCNearbyServiceAdvertiser(peer: peer, discoveryInfo: info, serviceType: service)
        browser = MCNearbyServiceBrowser(peer: peer, serviceType: service)
        super.init()
        session.delegate = self
        advertiser.delegate = self
        browser.delegate = self
    }

    /// A service type that no other test uses.
    static func service() -> String { "t" + String(UInt64.random(in: 0 ... .max), radix: 36).prefix(12) }

    // MARK: Events

    var events: [Event] { log.value }

    func note(_ event: Event, and more: () -> Void = {}) {
        log.change {
            $0.append(event)
            more()
        }
    }

    /// Removes all recorded events.
    func forget() { log.change { $0 = [] } }

    /// Waits until the condition holds for the recorded events.
    func wait(until isTrue: ([Event]) -> Bool) async { await log.wait(until: isTrue) }

    func wait(for event: Event, times: Int = 1) async {
        await wait { $0.filter { $0 == event }.count >= times }
    }

    func states(of peer: MCPeerID) -> [MCSessionState] {
        events.compactMap { if case .state(peer, let state) = $0 { state } else { nil } }
    }

    func messages(from peer: MCPeerID) -> [Data] {
        events.compactMap { if case .message(peer, let data) = $0 { data } else { nil } }
    }

    /// Waits until a peer of this name is found.
    func found(_ name: String) async throws -> MCPeerID {
        func peer(in events: [Event]) -> MCPeerID? {
            for case .found(let peer, _) in events where peer.displayName == name { return peer }
            return nil
        }
        await wait { peer(in: $0) != nil }
        return try #require(peer(in: events))
    }

    // MARK: Connecting

    /// Finds another device and invites it into this one's session.
    func invite(_ other: Device, context: Data? = nil, timeout: TimeInterval = patience) async {
        other.advertiser.startAdvertisingPeer()
        browser.startBrowsingForPeers()
        await wait { $0.contains { if case .found(other.id, _) = $0 { true } else { false } } }
        browser.invitePeer(other.id, to: session, withContext: context, timeout: timeout)
    }

    /// Invites another device, and waits until both are connected.
    func connect(_ other: Device) async {
        await invite(other)
        await wait(for: .state(other.id, .connected))
        await other.wait(for: .state(id, .connected))
    }

    /// Connects to another device and disconnects from it, again and again; the two take turns in disconnecting. Checks
    /// that each change of state was reported once to both.
    func connectAndDisconnect(_ other: Device, times count: Int) async {
        for round in 1...count {
            await invite(other)
            await wait(for: .state(other.id, .connected), times: round)
            await other.wait(for: .state(id, .connected), times: round)
            (round.isMultiple(of: 2) ? self : other).session.disconnect()
            await wait(for: .state(other.id, .notConnected), times: round)
            await other.wait(for: .state(id, .notConnected), times: round)
        }
        #expect(states(of: other.id).count == 3 * count && other.states(of: id).count == 3 * count)
    }

    /// Ends everything, so that tests do not see each other's devices.
    func end() {
        advertiser.stopAdvertisingPeer()
        browser.stopBrowsingForPeers()
        session.disconnect()
    }
}

/// A value that goes to another thread, although its type does not say that it may.
struct Passed<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}

extension Device: MCSessionDelegate {
    func session(_ session: MCSession, peer peerID: MCPeerID, didChange state: MCSessionState) {
        onState?(peerID, state)
        note(.state(peerID, state))
    }

    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID) {
        if let onMessage { onMessage(data, peerID) } else { note(.message(peerID, data)) }
    }

    func session(
        _ session: MCSession, didReceive stream: InputStream, withName streamName: String,
        fromPeer peerID: MCPeerID
    ) {
        onStream?(stream, streamName, peerID)
        note(.stream(peerID, streamName))
    }

    func session(
        _ session: MCSession, didStartReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID,
        with progress: Progress
    ) {
        onProgress?(progress)
        note(.began(peerID, resourceName))
    }

    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID,
        at localURL: URL?, withError error: (any Error)?
    ) {
        onResource?(localURL, error)
        note(.resource(peerID, resourceName, localURL.flatMap { try? Data(contentsOf: $0) })) {
            if let error { errors.append(error) }
        }
    }

    func session(
        _ session: MCSession, didReceiveCertificate certificate: [Any]?, fromPeer peerID: MCPeerID,
        certificateHandler: @escaping (Bool) -> Void
    ) {
        if let certificateAnswer {
            certificateAnswer(certificate, certificateHandler)
        } else {
            certificateHandler(true)
        }
    }
}

extension Device: MCNearbyServiceAdvertiserDelegate {
    func advertiser(
        _ advertiser: MCNearbyServiceAdvertiser, didReceiveInvitationFromPeer peerID: MCPeerID,
        withContext context: Data?, invitationHandler: @escaping (Bool, MCSession?) -> Void
    ) {
        switch answer {
        case .accept: invitationHandler(true, invitationSession ?? session)
        case .decline: invitationHandler(false, nil)
        case .nothing: break
        case .keep: break
        }
        note(.invitation(peerID, context)) { if case .keep = answer { handlers.append(invitationHandler) } }
    }

    func advertiser(_ advertiser: MCNearbyServiceAdvertiser, didNotStartAdvertisingPeer error: any Error) {
        note(.failed) { errors.append(error) }
    }
}

extension Device: MCNearbyServiceBrowserDelegate {
    func browser(
        _ browser: MCNearbyServiceBrowser, foundPeer peerID: MCPeerID,
        withDiscoveryInfo info: [String: String]?
    ) { note(.found(peerID, info)) }

    func browser(_ browser: MCNearbyServiceBrowser, lostPeer peerID: MCPeerID) { note(.lost(peerID)) }

    func browser(_ browser: MCNearbyServiceBrowser, didNotStartBrowsingForPeers error: any Error) {
        note(.failed) { errors.append(error) }
    }
}
