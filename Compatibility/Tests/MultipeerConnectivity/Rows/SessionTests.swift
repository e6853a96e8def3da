import MultipeerConnectivity
import Testing

/// Rows 16, 17, 27, 28, 46 and 47 of the table in the guide: who is in a session.
@Suite("A session", .timeLimit(.minutes(10))) struct SessionTests {
    private let service = Device.service()

    @Test("connects all its members with each other", arguments: Set([3, memberLimit]).sorted())
    func mesh(count: Int) async throws {
        let devices = (0..<count).map { Device("member \($0)", service: service) }
        for guest in devices.dropFirst() { await devices[0].connect(guest) }
        for device in devices {
            for other in devices where other !== device {
                await device.wait(for: .state(other.id, .connected))
            }
            #expect(Set(device.session.connectedPeers) == Set(devices.map(\.id)).subtracting([device.id]))
        }
        let message = Data("from the last".utf8)
        let last = devices[count - 1]
        try last.session.send(message, toPeers: last.session.connectedPeers, with: .reliable)
        for device in devices.dropLast() { await device.wait(for: .message(last.id, message)) }
        // The one that has invited them all goes, and the others stay.
        devices[0].session.disconnect()
        for device in devices.dropFirst() { await device.wait(for: .state(devices[0].id, .notConnected)) }
        #expect(last.session.connectedPeers.count == count - 2)
        for device in devices { device.end() }
    }

    @Test("has at most as many members as it may have, which are eight, and refuses the next")
    func full() async throws {
        let devices = (0..<memberLimit).map { Device("member \($0)", service: service) }
        for guest in devices.dropFirst() { await devices[0].connect(guest) }
        let next = Device("next", service: service)
        await devices[0].invite(next)
        await devices[0].wait(for: .state(next.id, .notConnected))
        await next.invite(devices[0])
        await next.wait(for: .state(devices[0].id, .notConnected))
        #expect(
            devices[0].session.connectedPeers.count == memberLimit - 1 && next.session.connectedPeers.isEmpty)
        for device in devices + [next] { device.end() }
    }

    @Test("that has invited more peers than it may have tells which of those that accepted had no room")
    func overbooked() async throws {
        let host = Device("host", service: service)
        let guests = (0..<memberLimit).map { Device("guest \($0)", service: service) }
        for guest in guests {
            guest.answer = .keep
            await host.invite(guest)
            await guest.wait(for: .invitation(host.id, nil))
        }
        for guest in guests { guest.handlers[0](true, guest.session) }
        for guest in guests {
            await host.wait { events in
                events.contains(.state(guest.id, .connected))
                    || events.contains(.state(guest.id, .notConnected))
            }
        }
        #expect(host.session.connectedPeers.count == memberLimit - 1)
        for device in [host] + guests { device.end() }
    }

    @Test("is one of several of a peer, also with the same other peer, and none gets what is for another")
    func several() async throws {
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        let collectors = (0..<4).map { _ in (Collector(), Collector()) }
        let sessions = collectors.map { collector in
            let pair = (MCSession(peer: puma.id), MCSession(peer: lynx.id))
            pair.0.delegate = collector.0
            pair.1.delegate = collector.1
            return pair
        }
        lynx.answer = .keep
        lynx.advertiser.startAdvertisingPeer()
        puma.browser.startBrowsingForPeers()
        _ = try await puma.found("Lynx")
        for (index, session) in sessions.enumerated() {
            puma.browser.invitePeer(
                lynx.id, to: session.0, withContext: Data([UInt8(index)]), timeout: Device.patience)
        }
        await lynx.wait { $0.filter { if case .invitation = $0 { true } else { false } }.count == 4 }
        let contexts = lynx.events.compactMap {
            if case .invitation(_, let context) = $0 { context?.first } else { nil }
        }
        for (index, handler) in zip(contexts, lynx.handlers) { handler(true, sessions[Int(index)].1) }
        for (index, session) in sessions.enumerated() {
            await collectors[index].0.wait { $0.states == [.connecting, .connected] }
            try session.0.send(Data("\(index)".utf8), toPeers: [lynx.id], with: .reliable)
        }
        for (index, collector) in collectors.enumerated() {
            await collector.1.wait { $0.messages == [Data("\(index)".utf8)] }
        }
        sessions[1].0.disconnect()
        await collectors[1].1.wait { $0.states.last == .notConnected }
        #expect(sessions[0].1.connectedPeers == [puma.id] && sessions[1].1.connectedPeers.isEmpty)
        for session in sessions {
            session.0.disconnect()
            session.1.disconnect()
        }
        puma.end()
        lynx.end()
    }

    @Test("can be used again after a disconnect, any number of times")
    func again() async {
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        await puma.connectAndDisconnect(lynx, times: 20)
        puma.end()
        lynx.end()
    }

    @Test("that the program lets go of leaves its peers, and may do so in its own delegate")
    func letGo() async {
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        var session: MCSession? = MCSession(peer: lynx.id)
        let holder = Holder(session)
        session?.delegate = holder
        lynx.invitationSession = session
        session = nil
        await puma.invite(lynx)
        await puma.wait(for: .state(lynx.id, .connected))
        lynx.invitationSession = nil
        holder.releasesSession = true
        try? puma.session.send(Data("go".utf8), toPeers: [lynx.id], with: .reliable)
        await puma.wait(for: .state(lynx.id, .notConnected))
        puma.end()
        lynx.end()
    }

    @Test("connects peers that the programs have introduced, once both ask for it")
    func ownDiscovery() async throws {
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        func archived(_ peer: MCPeerID) throws -> MCPeerID {
            let data = try NSKeyedArchiver.archivedData(withRootObject: peer, requiringSecureCoding: true)
            return try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: MCPeerID.self, from: data))
        }
        let pumaAtLynx = try archived(puma.id)
        let lynxAtPuma = try archived(lynx.id)
        let ofPuma = try await puma.session.nearbyConnectionData(forPeer: lynxAtPuma)
        let ofLynx = try await lynx.session.nearbyConnectionData(forPeer: pumaAtLynx)
        puma.session.connectPeer(lynxAtPuma, withNearbyConnectionData: ofLynx)
        lynx.session.connectPeer(pumaAtLynx, withNearbyConnectionData: ofPuma)
        await puma.wait(for: .state(lynx.id, .connected))
        await lynx.wait(for: .state(puma.id, .connected))
        #expect(puma.states(of: lynx.id) == [.connecting, .connected])
        try puma.session.send(Data("x".utf8), toPeers: [lynx.id], with: .reliable)
        await lynx.wait(for: .message(puma.id, Data("x".utf8)))
        puma.end()
        lynx.end()
    }

    @Test("is not connected to such a peer if only one asks, or if it gives the attempt up")
    func cancelled() async throws {
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        let ofLynx = try await lynx.session.nearbyConnectionData(forPeer: puma.id)
        puma.session.connectPeer(lynx.id, withNearbyConnectionData: ofLynx)
        puma.session.cancelConnectPeer(lynx.id)
        await puma.wait(for: .state(lynx.id, .notConnected))
        puma.session.connectPeer(lynx.id, withNearbyConnectionData: Data("nonsense".utf8))
        await puma.wait(for: .state(lynx.id, .notConnected), times: 2)
        #expect(lynx.events.isEmpty)
        puma.end()
        lynx.end()
    }
}

/// Records the states and messages that a session reports.
final class Collector: NSObject, MCSessionDelegate, @unchecked Sendable {
    struct Received {
        var states: [MCSessionState] = []
        var messages: [Data] = []
    }

    private let received = Watched(Received(), of: "A session's delegate")

    func wait(until isTrue: (Received) -> Bool) async { await received.wait(until: isTrue) }

    func session(_ session: MCSession, peer peerID: MCPeerID, didChange state: MCSessionState) {
        received.change { $0.states.append(state) }
    }

    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID) {
        received.change { $0.messages.append(data) }
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

    // The form of older programs.
    func session(
        _ session: MCSession, didFinishReceivingResourceWithName resourceName: String,
        fromPeer peerID: MCPeerID,
        at localURL: URL, withError error: (any Error)?
    ) {}
}

/// Releases its session during a call of that session.
private final class Holder: NSObject, MCSessionDelegate, @unchecked Sendable {
    private let lock = NSLock()
    private var session: MCSession?
    private var mayRelease = false

    init(_ session: MCSession?) { self.session = session }

    var releasesSession: Bool {
        get { lock.withLock { mayRelease } }
        set { lock.withLock { mayRelease = newValue } }
    }

    func session(_ session: MCSession, peer peerID: MCPeerID, didChange state: MCSessionState) {}

    func session(_ session: MCSession, didReceive data: Data, fromPeer peerID: MCPeerID) {
        lock.withLock { if mayRelease { self.session = nil } }
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
        at localURL: URL?, withError error: (any Error)?
    ) {}
}
