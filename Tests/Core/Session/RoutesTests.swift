import NighTestKit
import Testing

@testable import NighCore

/// Tests where a session sees peers, and which of the ways to a peer it takes.
@Suite struct RoutesTests {
    private let network = SimulatedNetwork()

    // MARK: Several routes

    @Test func `A peer seen on two transports is one peer and the better is dialled first`() throws {
        let network = SimulatedNetwork.withTwoWires()
        let (puma, lynx) = try network.meet()
        #expect(puma.machine.peers.count == 1)
        #expect(puma.peer(lynx.id)?.routes.map(\.address.scheme) == ["fast", "slow"])
        try network.invite(lynx, from: puma)
        #expect(puma.peer(lynx.id)?.transport == "fast")
        #expect(puma.states(of: lynx.id) == [.available, .connecting, .connected])
    }

    @Test func `A program learns that one of two routes to a peer is gone`() throws {
        let network = SimulatedNetwork.withTwoWires()
        let (puma, lynx) = try network.meet()
        let driver = puma.session.driver
        let slow = try #require(puma.peer(lynx.id)?.routes.last?.address)
        try #require(slow.scheme == "slow")
        driver.routeLost(slow, by: driver.transports[0])
        try network.run(for: .milliseconds(1))
        #expect(puma.peer(lynx.id)?.routes.map(\.address.scheme) == ["fast"])
        #expect(puma.states(of: lynx.id) == [.available])
    }

    @Test func `When every route fails the error lists them all`() throws {
        let network = SimulatedNetwork.withTwoWires()
        let (puma, lynx) = try network.meet()
        puma.fast.plan.refuse = .all
        puma.slow.plan.hang = .all
        puma.invite(lynx)
        try network.run(for: .seconds(15))
        let error = try #require(puma.failure)
        #expect(error.cause == .allFailed)
        #expect(error.attempts.map(\.transport) == ["fast", "slow"])
        #expect(error.attempts.map(\.cause) == [.refused, .timedOut])
        #expect(error.description.contains("over fast: nobody listens there"))
        #expect(puma.states(of: lynx.id) == [.available, .connecting, .available])
    }

    @Test func `Routes beyond the limit are ignored and counted`() throws {
        let puma = network.join("Puma") { $0.limits.routesPerPeer = 2 }
        let lynx = network.join("Lynx", role: .client)
        for number in 1...5 {
            puma.seeAnnouncement(
                of: lynx.id, at: TransportAddress(scheme: "memory", value: "place \(number)"))
        }
        #expect(puma.peer(lynx.id)?.routes.count == 2 && puma.statistics.sightingsIgnored == 3)
    }

    /// Has the session learn from others where its peer is, and returns the addresses that it keeps.
    private func introduce(_ addresses: [TransportAddress], to peer: ScriptedPeer) -> [TransportAddress] {
        peer.session.driver.inTurn {
            peer.machine.introduce(
                IntroducedPeer(
                    id: ScriptedPeer.peer, name: ScriptedPeer.hello.name, info: .none, addresses: addresses),
                now: peer.loop.now)
        }
        return peer.machine.peers[ScriptedPeer.peer]?.routes.map(\.address) ?? []
    }

    @Test func `Of the places that others name for a peer the first six that can be dialled are kept`() throws
    {
        let places = (0..<10).map { ScriptedTransport.address("place \($0)") }
        let elsewhere = TransportAddress(scheme: "unknown", value: "place")
        let kept = introduce([elsewhere, places[0]] + places, to: try ScriptedPeer())
        #expect(kept == Array(places.prefix(6)))
    }

    @Test func `The places that others name replace those that they named before`() throws {
        let peer = try ScriptedPeer()
        let places = (0..<3).map { ScriptedTransport.address("place \($0)") }
        #expect(introduce([places[0], places[1]], to: peer) == [places[0], places[1]])
        #expect(introduce([places[2], places[1]], to: peer) == [places[1], places[2]])
        #expect(introduce([], to: peer) == [])
    }

    // MARK: Who is seen

    @Test func `Roles decide which peers are seen`() throws {
        let server = network.join("Server", role: .server)
        let client = network.join("Client", role: .client)
        let peer = network.join("Peer", role: .peer)
        try network.run(for: .seconds(1))
        #expect(server.machine.peers.isEmpty)
        #expect(Set(client.machine.peers.keys) == [server.id, peer.id])
        #expect(Set(peer.machine.peers.keys) == [server.id])
    }

    @Test func `An inviter that was seen under another name is reported by the name of its hello`() throws {
        let puma = network.join("Puma", accepting: false)
        let lynx = network.join("Lynx", role: .client)
        puma.seeAnnouncement(of: lynx.id, called: "Bobcat", at: lynx.address)
        try network.run(for: .seconds(1))
        #expect(puma.peer(lynx.id)?.name.description == "Bobcat")
        try network.invite(puma, from: lynx)
        #expect(puma.invitations.map(\.peer.name.description) == ["Lynx"])
    }

    @Test func `A peer that was never seen is unavailable, and is called by its ID`() {
        let puma = network.join("Puma")
        let id = Identity.ephemeral(seed: 77).peerID
        let unknown = puma.session.peer(id)
        #expect(unknown.id == id && unknown.identity == id && unknown.name.description == id.short)
        #expect(unknown.state == .unavailable && unknown.routes.isEmpty && unknown.info.isEmpty)
        #expect(unknown.transport == nil && !unknown.hasDatagrams && !unknown.isFull && !unknown.isConnected)
    }

    /// The host was dialled by its address before discovery showed it there. After the conversation it is still known.
    @Test func `A peer seen at a manual address stays known`() throws {
        let host = network.join("Host", role: .server)
        let guest = network.join("Guest", role: .server)
        try network.run(for: .seconds(1))
        try network.invite(at: host.address, from: guest)
        guest.session.startBrowsing()
        try network.run(for: .seconds(1))
        try network.disconnect(guest, from: host)
        #expect(guest.outcomes == [.success(host.id)] && guest.state(of: host.id) == .available)
    }

    @Test func `Info is seen before connecting and can be changed`() throws {
        let host = network.join("Host") { $0.info = (try? DiscoveryInfo(["table": "open"])) ?? .none }
        let guest = network.join("Guest")
        try network.run(for: .seconds(1))
        #expect(guest.peer(host.id)?.info["table"] == "open")
        host.session.update(info: try DiscoveryInfo(["table": "full"]))
        try network.run(for: .seconds(1))
        let changes = guest.events.compactMap { event -> String? in
            if case .peerChanged(let peer) = event { peer.info["table"] } else { nil }
        }
        #expect(changes == ["full"])
    }

    @Test func `A peer that stops advertising stays connected`() throws {
        let (puma, lynx) = try network.connectedPair()
        let late = network.join("Late")
        try network.run(for: .seconds(1))
        #expect(late.state(of: lynx.id) == .available)
        lynx.session.stopAdvertising()
        try network.run(for: .seconds(1))
        #expect(late.state(of: lynx.id) == .unavailable && puma.state(of: lynx.id) == .connected)
        lynx.session.startAdvertising()
        try network.run(for: .seconds(1))
        #expect(late.state(of: lynx.id) == .available)
        late.session.stopBrowsing()
        try network.run(for: .seconds(1))
        #expect(late.machine.peers.isEmpty)
    }

    @Test func `Sightings beyond the limit are ignored and counted`() throws {
        for number in 0..<6 { network.join("Crowd\(number)", role: .server) }
        let guest = network.join("Guest", role: .client) { $0.limits.knownPeers = 4 }
        try network.run(for: .seconds(1))
        #expect(guest.machine.peers.count == 4 && guest.statistics.sightingsIgnored == 2)
    }

    // MARK: Reports

    @Test func `Unread events are bounded and their loss is reported`() throws {
        let idle = network.join("Idle", role: .client) { $0.limits.unreadEvents = 4 }
        let events = idle.session.events
        for number in 0..<10 { network.join("Crowd\(number)", role: .server) }
        try network.run(for: .seconds(1))
        guard case .eventsDropped(let count)? = events.poll() else {
            Issue.record("the loss was not told")
            return
        }
        var left = 0
        while events.poll() != nil { left += 1 }
        #expect(left == 4 && count >= 10 - 4)
    }

    @Test func `A reader of events begins with what lasts`() throws {
        let (puma, _) = try network.connectedPair()
        let events = puma.session.events
        func read() -> [String] {
            var descriptions: [String] = []
            while let event = events.poll() { descriptions.append("\(event)") }
            return descriptions
        }
        let begins = read().map { $0.prefix { $0 != "-" && $0 != "(" } }
        #expect(begins == ["memory listens at memory://first", "second ", "second "])
        puma.session.close {}
        try network.run(for: .seconds(5))
        #expect(read().last == "the session is closed")
    }

    @Test func `A reader of the list of peers gets each change, until the session is closed`() async throws {
        let (puma, lynx) = try network.meet()
        var lists = puma.session.peerLists.makeAsyncIterator()
        #expect(await lists.next(isolation: nil)?.map(\.id) == [lynx.id])
        lynx.session.stopAdvertising()
        try network.run(for: .seconds(1))
        try #require(await lists.next(isolation: nil)?.isEmpty == true)
        puma.session.close {}
        try network.run(for: .seconds(5))
        #expect(await lists.next(isolation: nil) == nil)
        var late = puma.session.peerLists.makeAsyncIterator()
        try #require(await late.next(isolation: nil)?.isEmpty == true)
        #expect(await late.next(isolation: nil) == nil)
    }

    @Test func `A transport that goes down is reported and takes what it has seen with it`() throws {
        let peer = try ScriptedPeer()
        let events = try #require(peer.transport.events)
        peer.find(at: ScriptedPeer.address)
        #expect(peer.machine.peers[ScriptedPeer.peer]?.state == .available)
        events.transportChanged(.down(ScriptedTransport.error(.starting)), by: peer.transport)
        #expect(peer.machine.peers[ScriptedPeer.peer] == nil)
        events.transportChanged(.up, by: peer.transport)
        let reports = peer.events.compactMap { event -> Bool? in
            switch event {
            case .transportUp("script"): true
            case .transportDown("script", _): false
            default: nil
            }
        }
        #expect(reports == [false, true])
    }
}
