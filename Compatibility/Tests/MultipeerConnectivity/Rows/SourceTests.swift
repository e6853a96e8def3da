import Testing

import class MultipeerConnectivity.MCSession
import MultipeerConnectivity.MCPeerID

// Source code that programs have besides calls: conformances of their own, subclasses, imports of parts.

extension MCPeerID: Identifiable {
    /// The name.
    public var id: String { displayName }
}

extension MCSessionState: CustomStringConvertible {
    /// The state in words.
    public var description: String {
        switch self {
        case .notConnected: "not connected"
        case .connecting: "connecting"
        case .connected: "connected"
        @unknown default: "?"
        }
    }
}

private final class OwnPeer: MCPeerID {
    override var displayName: String { "own \(super.displayName)" }
}

private final class OwnSession: MCSession {
    private(set) var calls = 0

    override init(
        peer myPeerID: MCPeerID, securityIdentity identity: [Any]?,
        encryptionPreference: MCEncryptionPreference
    ) {
        super.init(peer: myPeerID, securityIdentity: identity, encryptionPreference: encryptionPreference)
    }

    override var connectedPeers: [MCPeerID] { [myPeerID] }

    override func send(_ data: Data, toPeers peerIDs: [MCPeerID], with mode: MCSessionSendDataMode) throws {
        calls += 1
    }
}

private final class OwnAdvertiser: MCNearbyServiceAdvertiser {
    private(set) var starts = 0

    override func startAdvertisingPeer() { starts += 1 }
}

@Suite("A program's source") struct SourceTests {
    @Test("may add conformances that Apple's framework does not have")
    func conformances() {
        _ = transportsAreChosen
        #expect(MCPeerID(displayName: "Puma").id == "Puma" && "\(MCSessionState.connecting)" == "connecting")
    }

    @Test("may subclass, and override what is open")
    func subclasses() throws {
        _ = transportsAreChosen
        let peer = OwnPeer(displayName: "Puma")
        let session = OwnSession(peer: peer)
        try session.send(Data(), toPeers: [], with: .unreliable)
        #expect(session.calls == 1 && session.connectedPeers == [peer] && peer.displayName == "own Puma")
        #expect(session.encryptionPreference == .optional && session.securityIdentity == nil)
        let advertiser = OwnAdvertiser(peer: peer, discoveryInfo: nil, serviceType: "own-service")
        advertiser.startAdvertisingPeer()
        #expect(advertiser.starts == 1 && advertiser.serviceType == "own-service")
    }

    @Test("holds delegates itself: a session does not keep its own alive")
    func delegates() {
        _ = transportsAreChosen
        let session = MCSession(peer: MCPeerID(displayName: "Puma"))
        var collector: Collector? = Collector()
        session.delegate = collector
        #expect(session.delegate === collector)
        collector = nil
        #expect(session.delegate == nil)
    }
}
