import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Whoever announces another's PeerID, or listens at its address, does not keep the two from meeting.
@Suite struct ImpostorTests {
    private let place = Neighbourhood()

    private static let route = TransportAddress(scheme: "memory", value: "route")

    /// A guest that sees `host` along one route, which stands for `places` and is dialled at the first.
    private func guest(
        seeing host: PeerID, at places: @escaping () -> [TransportAddress],
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionProbe {
        let guest = place.join(
            "Guest", role: .client, adjust: adjust,
            through: { inner in
                let transport = RelabelledTransport(inner, scheme: "memory", priority: 0)
                transport.finds = false
                transport.placesBehind = { $0 == Self.route ? places() : [$0] }
                return transport
            })
        try place.run(.seconds(1))
        let driver = guest.session.driver
        let advertisement = Advertisement(service: "test", peer: host, name: DisplayName(fitting: "Host"))
        driver.routeFound(
            Sighting(address: Self.route, advertisement: advertisement), by: driver.transports[0])
        return guest
    }

    private func impostors(_ count: Int, _ manner: Impostor.Manner) -> [Impostor] {
        (0..<count).map { Impostor(manner, at: "impostor-\($0)", announcing: nil, in: place) }
    }

    @Test(arguments: Impostor.Manner.allCases)
    func aForgedAnnouncementDoesNotHideThePeer(_ manner: Impostor.Manner) throws {
        let id = Identity.ephemeral(seed: 77).peerID
        let impostor = Impostor(manner, at: "impostor", announcing: id, in: place)
        let guest = place.join("Guest", role: .client)
        try place.run(.seconds(1))
        let host = place.join("Host", role: .server, seed: 77)
        try place.run(.seconds(1))
        #expect(guest.peer(id)?.routes.map(\.address) == [impostor.address, host.address])
        guest.invite(host)
        try place.run(.milliseconds(2_500))
        #expect(guest.outcomes == [.success(id)])
        #expect(impostor.opened == 1 && impostor.closed == 1)
    }

    @Test(arguments: Impostor.Manner.allCases)
    func aForgedPlaceBehindTheRouteDoesNotHideThePeer(_ manner: Impostor.Manner) throws {
        let impostor = Impostor(manner, at: "impostor", announcing: nil, in: place)
        let host = place.join("Host", role: .server)
        let guest = try guest(seeing: host.id) { [impostor.address, host.address] }
        guest.invite(host)
        try place.run(.milliseconds(2_500))
        #expect(guest.outcomes == [.success(host.id)])
        #expect(impostor.opened == 1 && impostor.closed == 1)
    }

    @Test func fiftySilentPlacesBeforeTheTrueOneAreGoneThroughInTime() throws {
        let impostors = impostors(50, .silent)
        let host = place.join("Host", role: .server)
        let guest = try guest(seeing: host.id) { impostors.map(\.address) + [host.address] }
        guest.invite(host)
        for _ in 0..<90 {
            try place.run(.milliseconds(100))
            let open = impostors.reduce(0) { $0 + $1.opened - $1.closed }
            #expect(open <= SessionMachine.dialsAtOnce, "\(open) pipes are open at once")
        }
        #expect(guest.outcomes == [.success(host.id)])
        #expect(impostors.allSatisfy { $0.opened == $0.closed })
    }

    @Test func placesBeyondTheLimitAreLeftOut() throws {
        let impostors = impostors(9, .closing)
        let host = place.join("Host", role: .server)
        let guest = try guest(seeing: host.id, at: { impostors.map(\.address) + [host.address] }) {
            $0.limits.placesPerRoute = 4
        }
        guest.invite(host)
        try place.run(.seconds(5))
        #expect(impostors.count { $0.opened > 0 } == 4)
        #expect(guest.failure?.attempts.count == 4)
    }

    @Test func somebodyElseAtAnAddressOfThePeerDoesNotHideIt() throws {
        let other = place.join("Other", role: .server)
        let host = place.join("Host", role: .server)
        let guest = try guest(seeing: host.id) { [other.address, host.address] }
        guest.invite(host)
        try place.run(.milliseconds(100))
        #expect(guest.outcomes == [.success(host.id)])
        #expect(other.session.driver.machine.links.isEmpty)
    }

    @Test func anInvitationOfImpostorsAloneFailsAndNamesThemAll() throws {
        let impostors = impostors(3, .closing)
        let host = place.join("Host", role: .server)
        let guest = try guest(seeing: host.id) { impostors.map(\.address) }
        guest.invite(host)
        try place.run(.seconds(1))
        #expect(guest.failure?.cause == .allFailed)
        #expect(guest.failure?.attempts.count == 3)
        #expect(impostors.allSatisfy { $0.opened == 1 })
        #expect(guest.state(of: host.id) == .available)
    }

    /// The honest place of a slow link is not called a second time while its handshake goes on.
    @Test func whoIsSlowIsDialledOnce() throws {
        var plan = FaultPlan()
        plan.delay = .milliseconds(1_500)
        let host = place.join("Host", role: .server, plan: plan)
        let guest = try guest(seeing: host.id) { [host.address] }
        guest.invite(host)
        try place.run(.seconds(9))
        #expect(guest.outcomes == [.success(host.id)])
        #expect(guest.statistics.dials == 1)
    }

    @Test func aConversationFindsItsWayBackPastAnImpostor() throws {
        let host = place.join("Host", role: .server)
        let impostor = Impostor(.silent, at: "impostor", announcing: nil, in: place)
        nonisolated(unsafe) var isForged = false  // the loop is virtual: one thread
        let guest = try guest(seeing: host.id) { (isForged ? [impostor.address] : []) + [host.address] }
        guest.invite(host)
        try place.run(.seconds(1))
        try #require(guest.state(of: host.id) == .connected)
        isForged = true
        guest.faults.cut()
        try guest.session.trySend(Array("still here".utf8), to: host.id)
        try place.run(.seconds(4))
        #expect(guest.state(of: host.id) == .connected)
        #expect(host.texts == ["still here"])
    }

    @Test func twoArePairedPastAnImpostor() throws {
        let impostor = Impostor(.silent, at: "impostor", announcing: nil, in: place)
        let host = place.join("Host", role: .server)
        host.session.setAcceptingPairing(true)
        let guest = try guest(seeing: host.id) { [impostor.address, host.address] }
        guest.pair(with: host)
        try place.run(.seconds(4))
        #expect(guest.codes.count == 1 && host.codes.count == 1)
    }

    /// What was taken back is over: the machine keeps nothing of a race.
    @Test func anInvitationTakenBackClosesEveryPipe() throws {
        let impostors = impostors(20, .silent)
        let host = place.join("Host", role: .server)
        let guest = try guest(seeing: host.id) { impostors.map(\.address) }
        guest.invite(host)
        try place.run(.seconds(3))
        #expect(impostors.count { $0.opened > $0.closed } == SessionMachine.dialsAtOnce)
        guest.session.cancelInvitation(of: host.id)
        try place.run(.seconds(1))
        #expect(impostors.allSatisfy { $0.opened == $0.closed })
        let machine = guest.session.driver.machine
        #expect(machine.races.isEmpty && machine.dials.isEmpty && machine.links.isEmpty)
    }
}
