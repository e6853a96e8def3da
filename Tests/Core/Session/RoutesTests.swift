import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite struct RoutesTests {
    /// A member with a fast and a slow transport.
    private final class TwoWays: @unchecked Sendable {
        // Confined to the test's thread, which is the virtual loop's.
        let session: Session
        let fast: FaultControl
        let slow: FaultControl
        var states: [PeerState] = []
        /// The schemes of the peer's routes, as last reported.
        var shownRoutes: [String] = []
        var texts: [String] = []

        init(_ name: String, seed: UInt64, place: Neighbourhood, slowHub: MemoryHub) {
            let fastTransport = FaultyTransport(MemoryTransport(hub: place.hub))
            let slowTransport = FaultyTransport(MemoryTransport(hub: slowHub))
            fast = fastTransport.control
            slow = slowTransport.control
            var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: name))
            configuration.seed = seed
            session = Session(
                configuration, identity: .ephemeral(seed: seed),
                transports: [
                    RelabelledTransport(slowTransport, scheme: "slow", priority: 20),
                    RelabelledTransport(fastTransport, scheme: "fast", priority: 10),
                ], loop: place.loop)
            session.start(
                onEvent: { [weak self] event in
                    if let peer = event.stateChange?.peer { self?.states.append(peer.state) }
                    switch event {
                    case .invited(let invitation): invitation.accept()
                    case .peerChanged(let peer): self?.shownRoutes = peer.routes.map(\.address.scheme)
                    default: break
                    }
                },
                onMessage: { [weak self] bytes, _ in
                    self?.texts.append(bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
                })
        }

        func peer(_ id: PeerID) -> Peer? {
            session.driver.machine.peers[id].map(session.driver.machine.snapshot)
        }
    }

    private func twoPeersWithTwoTransports() throws -> (Neighbourhood, TwoWays, TwoWays) {
        let place = Neighbourhood()
        let slowHub = MemoryHub()
        let puma = TwoWays("Puma", seed: 1, place: place, slowHub: slowHub)
        let lynx = TwoWays("Lynx", seed: 2, place: place, slowHub: slowHub)
        try place.run(.seconds(1))
        return (place, puma, lynx)
    }

    @Test func routesBeyondTheLimitAreIgnoredAndCounted() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma") { $0.limits.routesPerPeer = 2 }
        let lynx = place.join("Lynx", role: .client)
        let advertisement = Advertisement(service: "test", peer: lynx.id, name: DisplayName(fitting: "Lynx"))
        let driver = puma.session.driver
        for number in 1...5 {
            let address = TransportAddress(scheme: "memory", value: "place \(number)")
            driver.routeFound(
                Sighting(address: address, advertisement: advertisement), by: driver.transports[0])
        }
        #expect(puma.peer(lynx.id)?.routes.count == 2)
        #expect(puma.statistics.sightingsIgnored == 3)
    }

    /// The host was dialled by its address before discovery showed it there. After the conversation it is still known.
    @Test func aPeerSeenAtAManualAddressStaysKnown() throws {
        let place = Neighbourhood()
        let host = place.join("Host", role: .server)
        let guest = place.join("Guest", role: .server)
        try place.run(.seconds(1))
        guest.session.invite(at: host.address) { guest.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(guest.outcomes == [.success(host.id)])
        guest.session.startBrowsing()
        try place.run(.seconds(1))
        guest.session.disconnect(host.id)
        try place.run(.seconds(1))
        #expect(guest.state(of: host.id) == .available)
    }

    @Test func aPeerSeenOnTwoTransportsIsOnePeerAndTheBetterIsDialledFirst() throws {
        let (place, puma, lynx) = try twoPeersWithTwoTransports()
        #expect(puma.session.driver.machine.peers.count == 1)
        #expect(puma.peer(lynx.session.id)?.routes.map(\.address.scheme) == ["fast", "slow"])
        puma.session.invite(lynx.session.id) { _ in }
        try place.run(.seconds(1))
        #expect(puma.peer(lynx.session.id)?.transport == "fast")
        #expect(puma.states == [.available, .connecting, .connected])
    }

    @Test("A program learns that one of two routes to a peer is gone, also without a conversation")
    func oneRouteIsGone() throws {
        let (place, puma, lynx) = try twoPeersWithTwoTransports()
        let driver = puma.session.driver
        let slow = try #require(puma.peer(lynx.session.id)?.routes.last?.address)
        try #require(slow.scheme == "slow")
        driver.routeLost(slow, by: driver.transports[0])
        try place.run(.milliseconds(1))
        #expect(puma.shownRoutes == ["fast"])
        #expect(puma.states == [.available])
    }

    @Test func theOtherRouteIsUsedWhenTheBetterOneFails() throws {
        let (place, puma, lynx) = try twoPeersWithTwoTransports()
        var plan = FaultPlan()
        plan.refuse = .all
        puma.fast.plan = plan
        nonisolated(unsafe) var outcome: Result<PeerID, NighError>?  // the loop is virtual: one thread
        puma.session.invite(lynx.session.id) { outcome = $0 }
        try place.run(.seconds(1))
        #expect(outcome == .success(lynx.session.id))
        #expect(puma.peer(lynx.session.id)?.transport == "slow")
    }

    @Test func whenEveryRouteFailsTheErrorListsThemAll() throws {
        let (place, puma, lynx) = try twoPeersWithTwoTransports()
        var plan = FaultPlan()
        plan.refuse = .all
        puma.fast.plan = plan
        plan.refuse = nil
        plan.hang = .all
        puma.slow.plan = plan
        nonisolated(unsafe) var outcome: Result<PeerID, NighError>?  // the loop is virtual: one thread
        puma.session.invite(lynx.session.id) { outcome = $0 }
        try place.run(.seconds(15))
        guard case .failure(let error)? = outcome else {
            Issue.record("no failure")
            return
        }
        #expect(error.cause == .allFailed)
        #expect(error.attempts.map(\.transport) == ["fast", "slow"])
        #expect(error.attempts.map(\.cause) == [.refused, .timedOut])
        #expect(error.description.contains("over fast: nobody listens there"))
        #expect(puma.states == [.available, .connecting, .available])
    }

    @Test func aConversationMovesToTheOtherTransportWhenItsOwnDies() throws {
        let (place, puma, lynx) = try twoPeersWithTwoTransports()
        puma.session.invite(lynx.session.id) { _ in }
        try place.run(.seconds(1))
        for number in 0..<20 {
            try puma.session.trySend(Array("p\(number)".utf8), to: lynx.session.id)
            try lynx.session.trySend(Array("l\(number)".utf8), to: puma.session.id)
            if number == 10 {
                for member in [puma, lynx] {
                    member.fast.block(dials: .refuse)
                    member.fast.cut()
                }
            }
        }
        try place.run(.seconds(10))
        #expect(puma.peer(lynx.session.id)?.transport == "slow")
        #expect(lynx.texts == (0..<20).map { "p\($0)" })
        #expect(puma.texts == (0..<20).map { "l\($0)" })
        #expect(puma.states == [.available, .connecting, .connected, .reconnecting, .connected])
    }

    @Test func rolesDecideWhichPeersAreSeen() throws {
        let place = Neighbourhood()
        let server = place.join("Server", role: .server)
        let client = place.join("Client", role: .client)
        let peer = place.join("Peer", role: .peer)
        try place.run(.seconds(1))
        #expect(server.session.driver.machine.peers.isEmpty)
        #expect(Set(client.session.driver.machine.peers.keys) == [server.id, peer.id])
        #expect(Set(peer.session.driver.machine.peers.keys) == [server.id])
    }

    @Test func infoIsSeenBeforeConnectingAndCanBeChanged() throws {
        let place = Neighbourhood()
        let host = place.join("Host") { $0.info = (try? DiscoveryInfo(["table": "open"])) ?? .none }
        let guest = place.join("Guest")
        try place.run(.seconds(1))
        #expect(guest.session.driver.machine.peers[host.id]?.info["table"] == "open")
        host.session.update(info: try DiscoveryInfo(["table": "full"]))
        try place.run(.seconds(1))
        #expect(guest.session.driver.machine.peers[host.id]?.info["table"] == "full")
        let changes = guest.events.compactMap { event -> String? in
            if case .peerChanged(let peer) = event { peer.info["table"] } else { nil }
        }
        #expect(changes == ["full"])
    }

    @Test func aPeerThatStopsAdvertisingStaysConnected() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        let late = place.join("Late")
        try place.run(.seconds(1))
        #expect(late.state(of: lynx.id) == .available)
        lynx.session.stopAdvertising()
        try place.run(.seconds(1))
        #expect(late.state(of: lynx.id) == .unavailable)
        #expect(puma.state(of: lynx.id) == .connected)
        lynx.session.startAdvertising()
        try place.run(.seconds(1))
        #expect(late.state(of: lynx.id) == .available)
        late.session.stopBrowsing()
        try place.run(.seconds(1))
        #expect(late.session.driver.machine.peers.isEmpty)
    }

    @Test func sightingsBeyondTheLimitAreIgnoredAndCounted() throws {
        let place = Neighbourhood()
        let crowd = (0..<6).map { place.join("Crowd\($0)", role: .server) }
        let guest = place.join("Guest", role: .client) { $0.limits.knownPeers = 4 }
        try place.run(.seconds(1))
        #expect(guest.session.driver.machine.peers.count == 4)
        #expect(guest.statistics.sightingsIgnored == 2)
        #expect(crowd.count == 6)
    }

    @Test func unreadEventsAreBoundedAndTheirLossIsReported() async throws {
        let place = Neighbourhood()
        var configuration = SessionConfiguration(
            service: "test", name: DisplayName(fitting: "Idle"), role: .client)
        configuration.limits.unreadEvents = 4
        let session = Session(
            configuration, identity: .ephemeral(seed: 500), transports: [MemoryTransport(hub: place.hub)],
            loop: place.loop)
        let events = session.events
        session.start()
        let crowd = (0..<10).map { place.join("Crowd\($0)", role: .server) }
        try place.run(.seconds(1))
        guard case .eventsDropped(let count)? = events.poll() else {
            Issue.record("the loss was not told")
            return
        }
        var left = 0
        while events.poll() != nil { left += 1 }
        #expect(left == 4)
        #expect(count >= crowd.count - 4)
    }

    @Test func aReaderOfEventsBeginsWithWhatLasts() throws {
        let place = Neighbourhood()
        let (puma, _) = try place.pair()
        let events = puma.session.events
        var begins: [String] = []
        while let event = events.poll() {
            begins.append(String("\(event)".prefix { $0 != "-" && $0 != "(" }))
        }
        #expect(begins == ["memory listens at memory://first", "second ", "second "])
        puma.session.close {}
        try place.run(.seconds(5))
        var ends: [String] = []
        while let event = events.poll() { ends.append("\(event)") }
        #expect(ends.last == "the session is closed", "\(ends)")
    }

    @Test func aTransportThatGoesDownIsReportedAndTakesWhatItHasSeenWithIt() throws {
        let peer = try ScriptedPeer()
        let events = try #require(peer.transport.events)
        let sighting = ScriptedTransport.sighting
        events.routeFound(sighting, by: peer.transport)
        let machine = peer.session.driver.machine
        #expect(machine.peers[sighting.advertisement.peer]?.state == .available)
        events.transportChanged(.down(ScriptedTransport.error(.starting)), by: peer.transport)
        #expect(machine.peers[sighting.advertisement.peer] == nil)
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

    /// Has the session learn from others where its peer is, and returns the addresses that it keeps.
    private func introduce(_ addresses: [TransportAddress], to peer: ScriptedPeer) -> [TransportAddress] {
        let driver = peer.session.driver
        driver.inTurn {
            driver.machine.introduce(
                IntroducedPeer(
                    id: ScriptedPeer.peer, name: ScriptedPeer.hello.name, info: .none, addresses: addresses),
                now: peer.loop.now)
        }
        return driver.machine.peers[ScriptedPeer.peer]?.routes.map(\.address) ?? []
    }

    @Test func ofThePlacesThatOthersNameForAPeerTheFirstSixThatCanBeDialledAreKept() throws {
        let places = (0..<10).map { ScriptedTransport.address("place \($0)") }
        let elsewhere = TransportAddress(scheme: "unknown", value: "place")
        let kept = introduce([elsewhere, places[0]] + places, to: try ScriptedPeer())
        #expect(kept == Array(places.prefix(6)))
    }

    @Test func thePlacesThatOthersNameReplaceThoseThatTheyNamedBefore() throws {
        let peer = try ScriptedPeer()
        let places = (0..<3).map { ScriptedTransport.address("place \($0)") }
        #expect(introduce([places[0], places[1]], to: peer) == [places[0], places[1]])
        #expect(introduce([places[2], places[1]], to: peer) == [places[1], places[2]])
        #expect(introduce([], to: peer) == [])
    }
}
