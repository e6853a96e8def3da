import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests addresses that a transport was given: the session itself finds out who is there.
@Suite struct KnownAddressTests {
    private let network = SimulatedNetwork()

    private static let table = TransportAddress(scheme: "memory", value: "table")

    /// Wraps a transport so that it knows addresses, and finds others only if told so.
    private static func knowing(
        _ addresses: [TransportAddress], finds: Bool = false, of scheme: String = "memory"
    ) -> (any Transport) -> any Transport {
        { inner in
            guard inner.scheme == scheme else { return inner }
            let transport = RelabelledTransport(inner, scheme: scheme, priority: inner.capabilities.priority)
            transport.knownAddresses = addresses
            transport.finds = finds
            return transport
        }
    }

    /// A guest that finds nobody by discovery, and knows `addresses`.
    private func guest(
        knowing addresses: [TransportAddress] = [table], role: SessionRole = .client,
        plan: FaultPlan = .none, adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionProbe {
        network.join("Guest", role: role, plan: plan, adjust: adjust, through: Self.knowing(addresses))
    }

    private func host(
        number: UInt64 = 77, adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionProbe {
        network.join("Host", role: .server, number: number, at: Self.table.value, adjust: adjust)
    }

    @Test func `A peer at a known address is seen and can be invited`() throws {
        let (host, guest) = (host(), guest())
        try network.run(for: .seconds(1))
        #expect(guest.states(of: host.id) == [.available])
        let peer = try #require(guest.machine.peers[host.id])
        #expect(peer.name.description == "Host")
        #expect(peer.routes.map(\.address) == [Self.table])
        #expect(host.events.allSatisfy { $0.stateChange == nil })
        #expect(host.machine.links.isEmpty)

        guest.invite(host)
        try network.run(for: .seconds(60))
        #expect(guest.outcomes == [.success(host.id)])
        #expect(guest.states(of: host.id) == [.available, .connecting, .connected])
        #expect(guest.problems.isEmpty)
        // A connected peer is not visited in addition.
        #expect(guest.statistics.dials == 2)
    }

    @Test func `An address without peer is reported once and retried with back off`() throws {
        let guest = guest()
        try network.run(for: .seconds(300))
        let error = try #require(guest.problems.first)
        #expect(guest.problems.count == 1)
        #expect(error.stage == .connecting && error.cause == .refused && error.transport == "memory")
        #expect(error.description.contains("table"))
        #expect((12...18).contains(guest.statistics.dials), "\(guest.statistics.dials) dials")

        let host = host()
        try network.run(for: .seconds(38))
        #expect(guest.state(of: host.id) == .available)
    }

    @Test func `A new reason is reported and the same reason again after a success`() throws {
        let guest = guest()
        try network.run(for: .seconds(1))
        let stranger = host { $0.service = "chess" }
        try network.run(for: .seconds(120))
        #expect(guest.problems.map(\.cause) == [.refused, .wrongService("chess")])
        #expect(guest.problems.last?.advice != nil)
        stranger.session.close {}
        try network.run(for: .seconds(1))
        let host = host()
        try network.run(for: .seconds(40))
        #expect(guest.state(of: host.id) == .available)
        host.session.close {}
        try network.run(for: .seconds(60))
        #expect(guest.state(of: host.id) == .unavailable)
        #expect(guest.problems.map(\.cause) == [.refused, .wrongService("chess"), .refused])
    }

    @Test func `An address of the session itself is dropped quietly`() throws {
        let lone = network.join(
            "Lone", at: Self.table.value, through: Self.knowing([Self.table], finds: true))
        try network.run(for: .seconds(120))
        #expect(lone.machine.peers.isEmpty)
        #expect(lone.problems.isEmpty)
        #expect((2...6).contains(lone.statistics.dials), "\(lone.statistics.dials) dials")
    }

    @Test func `A peer that is also discovered is one peer with two routes`() throws {
        let network = SimulatedNetwork(wires: [.init(), .init("hidden", priority: 20)])
        let host = network.join("Host", role: .server, through: Self.knowing([], of: "hidden"))
        let address = TransportAddress(scheme: "hidden", value: host.address.value)
        let guest = network.join("Guest", role: .client, through: Self.knowing([address], of: "hidden"))
        try network.run(for: .seconds(1))
        let peer = try #require(guest.machine.peers[host.id])
        #expect(guest.machine.peers.count == 1)
        #expect(Set(peer.routes.map(\.address.scheme)) == ["memory", "hidden"])
        #expect(guest.states(of: host.id) == [.available])
        host.session.update(info: try DiscoveryInfo(["table": "open"]))
        try network.run(for: .seconds(60))
        // A hello carries no discovery info, and does not remove any.
        #expect(guest.machine.peers[host.id]?.info["table"] == "open")
        host.session.stopAdvertising()
        try network.run(for: .seconds(60))
        #expect(guest.states(of: host.id) == [.available, .unavailable])
        host.session.startAdvertising()
        try network.run(for: .seconds(60))
        #expect(guest.machine.peers[host.id]?.routes.count == 2)
    }

    @Test func `A peer that leaves is lost and keeps its ID when it returns`() throws {
        let (first, guest) = (host(), guest())
        try network.run(for: .seconds(1))
        first.session.close {}
        try network.run(for: .seconds(16) + .seconds(4))
        #expect(guest.states(of: first.id) == [.available, .unavailable])
        let second = host()
        try network.run(for: .seconds(20))
        #expect(second.id == first.id)
        try network.invite(second, from: guest)
        #expect(guest.outcomes == [.success(second.id)])
        // A peer whose conversation has just ended is looked for at once.
        second.session.close {}
        try network.run(for: .milliseconds(100))
        #expect(guest.states(of: second.id).suffix(3) == [.disconnected, .available, .unavailable])
    }

    @Test func `A peer that crashes in a conversation is found again after its restart`() throws {
        let (first, guest) = (host(), guest())
        try network.run(for: .seconds(1))
        try network.invite(first, from: guest)
        first.session.crash()
        let second = host()
        try network.run(for: .seconds(2))
        #expect(second.id == first.id)
        #expect(guest.states(of: second.id).suffix(2) == [.disconnected, .available])
        #expect(guest.lastCause(of: second.id)?.cause == .restarted)
        try network.invite(second, from: guest)
        #expect(guest.outcomes == [.success(first.id), .success(second.id)])
    }

    @Test func `A new peer at the address replaces the former one`() throws {
        let (first, guest) = (host(), guest())
        try network.run(for: .seconds(1))
        first.session.close {}
        let second = host(number: 78)
        // The old peer still counts as there until it is invited.
        try network.invite(first, from: guest)
        #expect(guest.failure?.cause == .wrongPeer(expected: first.id, found: second.id))
        #expect(guest.state(of: first.id) == .unavailable)
        #expect(guest.state(of: second.id) == .available)
    }

    @Test func `A session that does not browse does not dial`() throws {
        let host = host()
        let guest = guest(role: .server)
        try network.run(for: .seconds(60))
        #expect(guest.statistics.dials == 0)
        guest.session.startBrowsing()
        try network.run(for: .seconds(1))
        #expect(guest.state(of: host.id) == .available)
        guest.session.stopBrowsing()
        try network.run(for: .seconds(60))
        #expect(guest.state(of: host.id) == .unavailable)
        #expect(guest.statistics.dials == 1)
    }

    @Test func `A probe in progress does not delay closing`() throws {
        let plan = try FaultPlan(parsing: "hang=all")
        let guests = [guest(plan: plan), guest(plan: plan)]
        try network.run(for: .seconds(1))
        guests[0].session.stopBrowsing()
        guests[1].session.close {}
        try network.run(for: .seconds(1))
        #expect(guests[1].events.contains { if case .closed = $0 { true } else { false } })
        try network.run(for: .seconds(60))
        for guest in guests {
            #expect(guest.problems.isEmpty)
            #expect(guest.machine.dials.isEmpty)
            #expect(guest.session.inconsistencies == [])
        }
    }

    @Test func `Addresses beyond the limit are ignored and counted`() throws {
        let addresses = (0..<6).map { TransportAddress(scheme: "memory", value: "table\($0)") }
        let guest = guest(knowing: addresses) { $0.limits.knownAddresses = 4 }
        try network.run(for: .milliseconds(100))
        #expect(guest.statistics.dials == 4)
        #expect(guest.statistics.sightingsIgnored == 2)
    }

    @Test func `A transport reports that it cannot advertise or browse`() throws {
        let host = host()
        let driver = host.session.driver
        let errors = [NighError.Cause.refused, .timedOut].map { NighError(.starting, $0) }
        driver.advertisingFailed(errors[0], by: driver.transports[0])
        driver.browsingFailed(errors[1], by: driver.transports[0])
        #expect(host.problems.map(\.cause) == [.refused, .timedOut])
    }

    @Test func `A session with too many peers reports that`() throws {
        let host = host()
        let guest = guest() { $0.limits.knownPeers = 0 }
        try network.run(for: .seconds(60))
        #expect(guest.state(of: host.id) == .unavailable)
        #expect(guest.problems.map(\.cause) == [.limit("known peers", 0)])
    }
}
