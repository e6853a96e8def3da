import NighMemory
import NighTestKit
import Testing
import Worlds

@testable import NighCore

/// A peer that announces another's PeerID, or listens at its address, cannot keep two peers from meeting.
@Suite struct ImpostorTests {
    private let network = SimulatedNetwork()

    private static let route = TransportAddress(scheme: "memory", value: "route")

    /// A guest that sees `host` at one route. The route stands for `places`, and a dial of it goes to the first of
    /// them.
    private func guest(
        seeing host: PeerID, at places: @escaping () -> [TransportAddress],
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionProbe {
        let guest = network.join(
            "Guest", role: .client, adjust: adjust,
            through: { inner in
                let transport = RelabelledTransport(inner, scheme: "memory", priority: 0)
                transport.finds = false
                transport.placesBehind = { $0 == Self.route ? places() : [$0] }
                return transport
            })
        try network.run(for: .seconds(1))
        guest.seeAnnouncement(of: host, called: "Host", at: Self.route)
        return guest
    }

    /// A host, and a guest that has invited it and sees it at one route, behind which these places are.
    private func hostAndGuest(
        behind impostors: [Impostor], isHostThere: Bool = true, plan: FaultPlan? = nil,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (host: SessionProbe, guest: SessionProbe) {
        let host = network.join("Host", role: .server, plan: plan)
        let places = impostors.map(\.address) + (isHostThere ? [host.address] : [])
        let guest = try guest(seeing: host.id, at: { places }, adjust: adjust)
        guest.invite(host)
        return (host, guest)
    }

    /// An impostor that announces `peer`, or only listens.
    private func impostor(
        _ behavior: Impostor.Behavior, at name: String = "impostor", announcing peer: PeerID? = nil
    ) -> Impostor {
        Impostor(
            behavior, at: name,
            announcing: Advertisement(
                service: peer == nil ? "elsewhere" : "test",
                peer: peer ?? Identity.ephemeral(seed: 999).peerID, name: DisplayName(fitting: name)),
            hub: network.hub(), loop: network.loop)
    }

    private func impostors(_ count: Int, _ behavior: Impostor.Behavior) -> [Impostor] {
        (0..<count).map { impostor(behavior, at: "impostor-\($0)") }
    }

    @Test(arguments: Impostor.Behavior.allCases)
    func `A forged announcement does not hide the peer`(_ behavior: Impostor.Behavior) throws {
        let id = Identity.ephemeral(seed: 77).peerID
        let impostor = impostor(behavior, announcing: id)
        let guest = network.join("Guest", role: .client)
        try network.run(for: .seconds(1))
        let host = network.join("Host", role: .server, number: 77)
        try network.run(for: .seconds(1))
        #expect(guest.peer(id)?.routes.map(\.address) == [impostor.address, host.address])
        guest.invite(host)
        try network.run(for: .milliseconds(2_500))
        #expect(guest.outcomes == [.success(id)])
        #expect(impostor.opened == 1 && impostor.closed == 1)
    }

    @Test(arguments: Impostor.Behavior.allCases)
    func `A forged address behind the route does not hide the peer`(_ behavior: Impostor.Behavior) throws {
        let impostor = impostor(behavior)
        let (host, guest) = try hostAndGuest(behind: [impostor])
        try network.run(for: .milliseconds(2_500))
        #expect(guest.outcomes == [.success(host.id)])
        #expect(impostor.opened == 1 && impostor.closed == 1)
    }

    @Test func `The peer is reached in time behind fifty silent addresses`() throws {
        let impostors = impostors(50, .silent)
        let (host, guest) = try hostAndGuest(behind: impostors)
        for _ in 0..<90 {
            try network.run(for: .milliseconds(100))
            let open = impostors.reduce(0) { $0 + $1.opened - $1.closed }
            #expect(open <= SessionMachine.dialsAtOnce, "\(open) pipes are open at once")
        }
        #expect(guest.outcomes == [.success(host.id)])
        #expect(impostors.allSatisfy { $0.opened == $0.closed })
    }

    @Test func `Addresses beyond the limit are not dialled`() throws {
        let impostors = impostors(9, .closing)
        let (_, guest) = try hostAndGuest(behind: impostors) { $0.limits.placesPerRoute = 4 }
        try network.run(for: .seconds(5))
        #expect(impostors.count { $0.opened > 0 } == 4)
        #expect(guest.failure?.attempts.count == 4)
    }

    @Test func `Another peer at an address of the peer does not hide it`() throws {
        let other = network.join("Other", role: .server)
        let host = network.join("Host", role: .server)
        let guest = try guest(seeing: host.id) { [other.address, host.address] }
        guest.invite(host)
        try network.run(for: .milliseconds(100))
        #expect(guest.outcomes == [.success(host.id)])
        #expect(other.machine.links.isEmpty)
    }

    @Test func `An invitation of impostors alone fails and names them all`() throws {
        let impostors = impostors(3, .closing)
        let (host, guest) = try hostAndGuest(behind: impostors, isHostThere: false)
        try network.run(for: .seconds(1))
        #expect(guest.failure?.cause == .allFailed && guest.failure?.attempts.count == 3)
        #expect(impostors.allSatisfy { $0.opened == 1 })
        #expect(guest.state(of: host.id) == .available)
    }

    /// The honest peer on a slow link is not dialled a second time while its handshake is in progress.
    @Test func `A slow peer is dialled once`() throws {
        let (host, guest) = try hostAndGuest(behind: [], plan: try FaultPlan(parsing: "delay=1500ms"))
        try network.run(for: .seconds(9))
        #expect(guest.outcomes == [.success(host.id)] && guest.statistics.dials == 1)
    }

    @Test func `A conversation resumes despite an impostor`() throws {
        let host = network.join("Host", role: .server)
        let impostor = impostor(.silent)
        nonisolated(unsafe) var isForged = false  // the loop is virtual: one thread
        let guest = try guest(seeing: host.id) { (isForged ? [impostor.address] : []) + [host.address] }
        try network.invite(host, from: guest)
        try #require(guest.state(of: host.id) == .connected)
        isForged = true
        guest.faults.cut()
        try guest.session.trySend(Array("still here".utf8), to: host.id)
        try network.run(for: .seconds(4))
        #expect(guest.state(of: host.id) == .connected && host.texts == ["still here"])
    }

    @Test func `Two sessions pair despite an impostor`() throws {
        let impostor = impostor(.silent)
        let host = network.join("Host", role: .server)
        host.session.startAcceptingPairing()
        let guest = try guest(seeing: host.id) { [impostor.address, host.address] }
        guest.pair(with: host)
        try network.run(for: .seconds(4))
        #expect(guest.codes.count == 1 && host.codes.count == 1)
    }

    /// After an invitation is cancelled, the machine keeps nothing of its race.
    @Test func `A cancelled invitation closes every pipe`() throws {
        let impostors = impostors(20, .silent)
        let (host, guest) = try hostAndGuest(behind: impostors, isHostThere: false)
        try network.run(for: .seconds(3))
        #expect(impostors.count { $0.opened > $0.closed } == SessionMachine.dialsAtOnce)
        guest.session.cancelInvitation(of: host.id)
        try network.run(for: .seconds(1))
        #expect(impostors.allSatisfy { $0.opened == $0.closed })
        #expect(guest.machine.races.isEmpty && guest.machine.dials.isEmpty && guest.machine.links.isEmpty)
    }

    /// Finding the peer past an impostor takes time once. The next link needs none.
    @Test func `The address where the peer was verified is dialled first`() throws {
        let impostor = impostor(.silent)
        let (host, guest) = try hostAndGuest(behind: [impostor])
        try network.run(for: .seconds(3))
        try #require(guest.state(of: host.id) == .connected && impostor.opened == 1)
        guest.faults.cut()
        try network.run(for: .milliseconds(100))
        #expect(guest.state(of: host.id) == .connected && impostor.opened == 1)
    }

    /// At the peer's old address, an impostor answers now.
    @Test func `An address that fails verification is no longer dialled first`() throws {
        let first = network.join("Host", role: .server, number: 77)
        var places = [first.address]
        let guest = try guest(seeing: first.id) { places }
        try network.invite(first, from: guest)
        try #require(guest.state(of: first.id) == .connected)
        first.session.crash()
        let second = network.join("Host", role: .server, number: 77)
        let impostor = impostor(.closing, at: first.address.value)
        places.append(second.address)
        try network.run(for: .seconds(20))
        for visits in 1...2 {
            guest.invite(second)
            try network.run(for: .seconds(3))
            #expect(guest.state(of: second.id) == .connected)
            #expect(impostor.opened > 0 && impostor.opened <= visits)
            guest.session.disconnect(second.id)
            try network.run(for: .seconds(3))
        }
    }

    /// An impostor that delays a dial does not keep the conversation from trying the honest route again.
    @Test func `A silent route does not delay a retry of the other`() throws {
        let host = network.join("Host", role: .server, number: 77)
        let guest = network.join("Guest", role: .client)
        try network.run(for: .seconds(1))
        try network.invite(host, from: guest)
        let impostor = impostor(.silent, announcing: host.id)
        try network.run(for: .seconds(1))
        try #require(guest.peer(host.id)?.routes.count == 2)
        guest.faults.block(.address(host.address), .both, dials: .refuse)
        guest.faults.cut()
        try network.run(for: .seconds(1))
        #expect(impostor.opened == 1)
        guest.faults.unblock()
        try network.run(for: .seconds(4))
        #expect(guest.state(of: host.id) == .connected)
    }
}
