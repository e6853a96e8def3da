import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests addresses that a transport was given: the session itself finds out who is there.
@Suite struct KnownAddressTests {
    private static let table = TransportAddress(scheme: "memory", value: "table")

    /// A guest that finds nobody by discovery, and knows `addresses`.
    private func guest(
        in place: Neighbourhood, knowing addresses: [TransportAddress] = [table], role: SessionRole = .client,
        plan: FaultPlan = .none, adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionProbe {
        place.join(
            "Guest", role: role, plan: plan, adjust: adjust,
            through: { inner in
                let transport = RelabelledTransport(inner, scheme: "memory", priority: 0)
                transport.knownAddresses = addresses
                transport.finds = false
                return transport
            })
    }

    private func host(
        in place: Neighbourhood, seed: UInt64 = 77, adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionProbe {
        place.join("Host", role: .server, seed: seed, address: Self.table, adjust: adjust)
    }

    private func failures(of probe: SessionProbe) -> [NighError] {
        probe.events.compactMap { if case .problem(let error) = $0 { error } else { nil } }
    }

    @Test func aPeerAtAKnownAddressIsSeenAndCanBeInvited() throws {
        let place = Neighbourhood()
        let host = host(in: place)
        let guest = guest(in: place)
        try place.run(.seconds(1))
        #expect(guest.states(of: host.id) == [.available])
        let peer = try #require(guest.session.driver.machine.peers[host.id])
        #expect(peer.name.description == "Host")
        #expect(peer.routes.map(\.address) == [Self.table])
        #expect(host.events.allSatisfy { $0.stateChange == nil })
        #expect(host.session.driver.machine.links.isEmpty)

        guest.session.invite(host.id) { guest.outcomes.append($0) }
        try place.run(.seconds(60))
        #expect(guest.outcomes == [.success(host.id)])
        #expect(guest.states(of: host.id) == [.available, .connecting, .connected])
        #expect(failures(of: guest).isEmpty)
        // A connected peer is not visited in addition.
        #expect(guest.statistics.dials == 2)
    }

    @Test func anAddressWithoutPeerIsReportedOnceAndRetriedWithBackOff() throws {
        let place = Neighbourhood()
        let guest = guest(in: place)
        try place.run(.seconds(300))
        let error = try #require(failures(of: guest).first)
        #expect(failures(of: guest).count == 1)
        #expect(error.stage == .connecting)
        #expect(error.cause == .refused)
        #expect(error.transport == "memory")
        #expect(error.description.contains("table"))
        #expect((12...18).contains(guest.statistics.dials), "\(guest.statistics.dials) dials")

        let host = host(in: place)
        try place.run(.seconds(38))
        #expect(guest.state(of: host.id) == .available)
    }

    @Test func aNewReasonIsReportedAndTheSameReasonAgainAfterASuccess() throws {
        let place = Neighbourhood()
        let guest = guest(in: place)
        try place.run(.seconds(1))
        let stranger = host(in: place) { $0.service = "chess" }
        try place.run(.seconds(120))
        #expect(failures(of: guest).map(\.cause) == [.refused, .wrongService("chess")])
        #expect(failures(of: guest).last?.advice != nil)
        stranger.session.close {}
        try place.run(.seconds(1))
        let host = host(in: place)
        try place.run(.seconds(40))
        #expect(guest.state(of: host.id) == .available)
        host.session.close {}
        try place.run(.seconds(60))
        #expect(guest.state(of: host.id) == .unavailable)
        #expect(failures(of: guest).map(\.cause) == [.refused, .wrongService("chess"), .refused])
    }

    @Test func anAddressOfTheSessionItselfIsDroppedQuietly() throws {
        let place = Neighbourhood()
        let lone = place.join(
            "Lone", address: Self.table,
            through: { inner in
                let transport = RelabelledTransport(inner, scheme: "memory", priority: 0)
                transport.knownAddresses = [Self.table]
                return transport
            })
        try place.run(.seconds(120))
        #expect(lone.session.driver.machine.peers.isEmpty)
        #expect(failures(of: lone).isEmpty)
        #expect((2...6).contains(lone.statistics.dials), "\(lone.statistics.dials) dials")
    }

    @Test func aPeerThatIsAlsoDiscoveredIsOnePeerWithTwoRoutes() throws {
        let place = Neighbourhood()
        let otherHub = MemoryHub()
        func twoTransports(_ name: String, seed: UInt64, known: [TransportAddress]) -> SessionProbe {
            let found = FaultyTransport(MemoryTransport(hub: place.hub))
            let hidden = RelabelledTransport(
                MemoryTransport(hub: otherHub, address: name), scheme: "hidden", priority: 20)
            hidden.finds = false
            hidden.knownAddresses = known
            var configuration = SessionConfiguration(
                service: "test", name: DisplayName(fitting: name), role: known.isEmpty ? .server : .client)
            configuration.seed = seed
            let session = Session(
                configuration, identity: .ephemeral(seed: seed), transports: [found, hidden], loop: place.loop
            )
            let probe = SessionProbe(number: Int(seed), session: session, faults: found.control)
            probe.start(reading: .handler, accepting: true)
            return probe
        }
        let address = TransportAddress(scheme: "hidden", value: "Host")
        let host = twoTransports("Host", seed: 1, known: [])
        let guest = twoTransports("Guest", seed: 2, known: [address])
        try place.run(.seconds(1))
        let peer = try #require(guest.session.driver.machine.peers[host.id])
        #expect(guest.session.driver.machine.peers.count == 1)
        #expect(Set(peer.routes.map(\.address.scheme)) == ["memory", "hidden"])
        #expect(guest.states(of: host.id) == [.available])
        host.session.update(info: try DiscoveryInfo(["table": "open"]))
        try place.run(.seconds(60))
        // A hello carries no discovery info, and does not remove any.
        #expect(guest.session.driver.machine.peers[host.id]?.info["table"] == "open")
        host.session.stopAdvertising()
        try place.run(.seconds(60))
        #expect(guest.states(of: host.id) == [.available, .unavailable])
        host.session.startAdvertising()
        try place.run(.seconds(60))
        #expect(guest.session.driver.machine.peers[host.id]?.routes.count == 2)
    }

    @Test func aPeerThatLeavesIsLostAndKeepsItsIDWhenItReturns() throws {
        let place = Neighbourhood()
        let first = host(in: place)
        let guest = guest(in: place)
        try place.run(.seconds(1))
        first.session.close {}
        try place.run(.seconds(16) + .seconds(4))
        #expect(guest.states(of: first.id) == [.available, .unavailable])
        let second = host(in: place)
        try place.run(.seconds(20))
        #expect(second.id == first.id)
        guest.session.invite(second.id) { guest.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(guest.outcomes == [.success(second.id)])
        // A peer whose conversation has just ended is looked for at once.
        second.session.close {}
        try place.run(.milliseconds(100))
        #expect(guest.states(of: second.id).suffix(3) == [.disconnected, .available, .unavailable])
    }

    @Test func aPeerThatCrashesInAConversationIsFoundAgainAfterItsRestart() throws {
        let place = Neighbourhood()
        let first = host(in: place)
        let guest = guest(in: place)
        try place.run(.seconds(1))
        guest.session.invite(first.id) { _ in }
        try place.run(.seconds(1))
        first.session.driver.crash()
        let second = host(in: place)
        try place.run(.seconds(2))
        #expect(second.id == first.id)
        #expect(guest.states(of: second.id).suffix(2) == [.disconnected, .available])
        #expect(guest.lastCause(of: second.id)?.cause == .restarted)
        guest.session.invite(second.id) { guest.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(guest.outcomes == [.success(second.id)])
    }

    @Test func aNewPeerAtTheAddressReplacesTheFormerOne() throws {
        let place = Neighbourhood()
        let first = host(in: place)
        let guest = guest(in: place)
        try place.run(.seconds(1))
        first.session.close {}
        let second = host(in: place, seed: 78)
        // The old peer still counts as there until it is invited.
        guest.session.invite(first.id) { guest.outcomes.append($0) }
        try place.run(.seconds(1))
        guard case .failure(let error)? = guest.outcomes.first else {
            Issue.record("\(guest.outcomes)")
            return
        }
        #expect(error.cause == .wrongPeer(expected: first.id, found: second.id))
        #expect(guest.state(of: first.id) == .unavailable)
        #expect(guest.state(of: second.id) == .available)
    }

    @Test func aSessionThatDoesNotBrowseDoesNotDial() throws {
        let place = Neighbourhood()
        let host = host(in: place)
        let guest = guest(in: place, role: .server)
        try place.run(.seconds(60))
        #expect(guest.statistics.dials == 0)
        guest.session.startBrowsing()
        try place.run(.seconds(1))
        #expect(guest.state(of: host.id) == .available)
        guest.session.stopBrowsing()
        try place.run(.seconds(60))
        #expect(guest.state(of: host.id) == .unavailable)
        #expect(guest.statistics.dials == 1)
    }

    @Test func aProbeInProgressDoesNotDelayClosing() throws {
        let place = Neighbourhood()
        var plan = FaultPlan()
        plan.hang = .all
        let guests = [guest(in: place, plan: plan), guest(in: place, plan: plan)]
        try place.run(.seconds(1))
        guests[0].session.stopBrowsing()
        guests[1].session.close {}
        try place.run(.seconds(1))
        #expect(guests[1].events.contains { if case .closed = $0 { true } else { false } })
        try place.run(.seconds(60))
        for guest in guests {
            #expect(failures(of: guest).isEmpty)
            #expect(guest.session.driver.machine.dials.isEmpty)
            #expect(guest.session.inconsistencies == [])
        }
    }

    @Test func addressesBeyondTheLimitAreIgnoredAndCounted() throws {
        let place = Neighbourhood()
        let addresses = (0..<6).map { TransportAddress(scheme: "memory", value: "table\($0)") }
        let guest = guest(in: place, knowing: addresses) { $0.limits.knownAddresses = 4 }
        try place.run(.milliseconds(100))
        #expect(guest.statistics.dials == 4)
        #expect(guest.statistics.sightingsIgnored == 2)
    }

    @Test func aTransportReportsThatItCannotAdvertiseOrBrowse() throws {
        let place = Neighbourhood()
        let host = host(in: place)
        let driver = host.session.driver
        let errors = [NighError.Cause.refused, .timedOut].map { NighError(.starting, $0) }
        driver.advertisingFailed(errors[0], by: driver.transports[0])
        driver.browsingFailed(errors[1], by: driver.transports[0])
        #expect(failures(of: host).map(\.cause) == [.refused, .timedOut])
    }

    @Test func aSessionWithTooManyPeersReportsThat() throws {
        let place = Neighbourhood()
        let host = host(in: place)
        let guest = guest(in: place) { $0.limits.knownPeers = 0 }
        try place.run(.seconds(60))
        #expect(guest.state(of: host.id) == .unavailable)
        #expect(failures(of: guest).map(\.cause) == [.limit("known peers", 0)])
    }
}
