// Talks to everybody nearby, as programs for MultipeerConnectivity do: a manager that advertises and browses, with one
// session for each peer and a peer ID that it keeps. Nothing here is Nigh's own. Run it on two machines:
//
//     swift run PeerManager Puma
import MultipeerConnectivity

struct Note: Codable {
    var text: String
    var number: Int
}

final class PeerManager: NSObject {
    let peerID: MCPeerID
    private let advertiser: MCNearbyServiceAdvertiser
    private let browser: MCNearbyServiceBrowser
    private var sessions: [MCPeerID: MCSession] = [:]
    private var count = 0
    // The three objects below call on queues of their own.
    private let queue = DispatchQueue(label: "manager")

    init(displayName: String) {
        peerID = PeerManager.storedPeerID(displayName)
        advertiser = MCNearbyServiceAdvertiser(
            peer: peerID, discoveryInfo: ["app": "notes"], serviceType: "nigh-notes")
        browser = MCNearbyServiceBrowser(peer: peerID, serviceType: "nigh-notes")
        super.init()
        advertiser.delegate = self
        browser.delegate = self
    }

    /// Returns the peer of the last start, as long as its name has not changed, or a new one.
    static func storedPeerID(_ displayName: String) -> MCPeerID {
        let folder = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)[0]
        let file = folder.appendingPathComponent("nigh-notes-\(displayName)")
        if let data = try? Data(contentsOf: file),
            let peer = try? NSKeyedUnarchiver.unarchivedObject(ofClass: MCPeerID.self, from: data),
            peer.displayName == displayName
        {
            return peer
        }
        let peer = MCPeerID(displayName: displayName)
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try NSKeyedArchiver.archivedData(withRootObject: peer, requiringSecureCoding: true).write(
                to: file)
        } catch {
            print("this peer is a new one at the next start: \(error.localizedDescription)")
        }
        return peer
    }

    func start() {
        advertiser.startAdvertisingPeer()
        browser.startBrowsingForPeers()
    }

    func stop() {
        advertiser.stopAdvertisingPeer()
        browser.stopBrowsingForPeers()
        queue.sync { for session in sessions.values { session.disconnect() } }
    }

    func send(_ text: String) {
        queue.sync {
            count += 1
            guard let data = try? JSONEncoder().encode(Note(text: text, number: count)) else { return }
            for session in sessions.values where !session.connectedPeers.isEmpty {
                do {
                    try session.send(data, toPeers: session.connectedPeers, with: .reliable)
                } catch {
                    print("not sent: \(error.localizedDescription)")
                }
            }
        }
    }

    private func session(for peer: MCPeerID) -> MCSession {
        queue.sync {
            if let session = sessions[peer] { return session }
            let session = MCSession(peer: peerID, securityIdentity: nil, encryptionPreference: .required)
            session.delegate = self
            sessions[peer] = session
            return session
        }
    }
}

extension PeerManager: MCNearbyServiceAdvertiserDelegate {
    func advertiser(
        _ advertiser: MCNearbyServiceAdvertiser, didReceiveInvitationFromPeer peerID: MCPeerID,
        withContext context: Data?, invitationHandler: @escaping (Bool, MCSession?) -> Void
    ) {
        invitationHandler(true, session(for: peerID))
    }

    func advertiser(_ advertiser: MCNearbyServiceAdvertiser, didNotStartAdvertisingPeer error: Error) {
        print("not advertised: \(error.localizedDescription)")
    }
}

extension PeerManager: MCNearbyServiceBrowserDelegate {
    func browser(
        _ browser: MCNearbyServiceBrowser, foundPeer peerID: MCPeerID,
        withDiscoveryInfo info: [String: String]?
    ) {
        print("found \(peerID.displayName)")
        browser.invitePeer(peerID, to: session(for: peerID), withContext: nil, timeout: 30)
    }

    func browser(_ browser: MCNearbyServiceBrowser, lostPeer peerID: MCPeerID) {
        print("lost \(peerID.displayName)")
    }

    func browser(_ browser: MCNearbyServiceBrowser, didNotStartBrowsingForPeers error: Error) {
        print("not browsing: \(error.localizedDescription)")
    }
}

extension PeerManager: MCSessionDelegate {
    func session(_ session: MCSession, peer peerID: MCPeerID, didChange state: MCSessionState) {
        switch state {
        case .connected: print("connected to \(peerID)")
        case .connecting: print("connecting to \(peerID.displayName)")
        case .notConnected: print("not connected to \(peerID.displayName)")
        @unknown default: break
        }
    }

    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID) {
        guard let note = try? JSONDecoder().decode(Note.self, from: data) else { return }
        print("\(peerID.displayName), note \(note.number): \(note.text)")
    }

    func session(
        _ session: MCSession, didReceive stream: InputStream, withName streamName: String,
        fromPeer peerID: MCPeerID
    ) {}

    func session(
        _ session: MCSession, didStartReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID,
        with progress: Progress
    ) {}

    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID,
        at localURL: URL?, withError error: Error?
    ) {}
}

let name = CommandLine.arguments.dropFirst().first ?? Host.current().localizedName ?? "somebody"
let manager = PeerManager(displayName: name)
print("this is \(manager.peerID)")
manager.start()
while let line = readLine() { manager.send(line) }
manager.stop()
// Gives the last messages time to leave.
Thread.sleep(forTimeInterval: 0.5)
