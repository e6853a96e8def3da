import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite struct InvitingTests {
    private let network = SimulatedNetwork()

    @Test func `Two sessions find each other, connect and exchange messages`() throws {
        let (puma, lynx) = try network.connectedPair()
        #expect(puma.outcomes == [.success(lynx.id)])
        #expect(puma.states(of: lynx.id) == [.available, .connecting, .connected])
        #expect(lynx.states(of: puma.id) == [.available, .connecting, .connected])
        try puma.session.trySend(Array("hello".utf8), to: lynx.id)
        try lynx.session.trySend(Array("hello yourself".utf8), to: puma.id)
        try network.run(for: .milliseconds(10))
        #expect(lynx.texts == ["hello"] && puma.texts == ["hello yourself"])
        #expect(lynx.messages[0].origin == MessageOrigin(peer: puma.id, lane: .main, isReliable: true))
    }

    // MARK: The invited program

    @Test func `The invited program sees the inviter and its context`() throws {
        let (puma, lynx) = try network.meet(accepting: false)
        puma.invite(lynx, context: Array("table 7".utf8))
        try network.run(for: .seconds(1))
        let invitation = try #require(lynx.invitations.first)
        #expect(invitation.peer.id == puma.id && invitation.peer.name == "Puma")
        #expect(invitation.context == Array("table 7".utf8) && invitation.transport == "memory")
        #expect(puma.state(of: lynx.id) == .connecting && lynx.state(of: puma.id) == .available)
        #expect(puma.outcomes.isEmpty)

        invitation.accept()
        try network.run(for: .seconds(1))
        #expect(puma.outcomes == [.success(lynx.id)] && lynx.state(of: puma.id) == .connected)
    }

    @Test func `An invitation says who has introduced the inviter`() throws {
        let (puma, lynx) = try network.meet(accepting: false)
        puma.session.invite(lynx.id, introduction: [1, 2, 3], timeout: .seconds(5)) { _ in }
        try network.run(for: .seconds(1))
        let invitation = try #require(lynx.invitations.first)
        #expect(invitation.introduction == [1, 2, 3])
        invitation.accept()
        try network.run(for: .seconds(1))
        #expect(puma.state(of: lynx.id) == .connected)
    }

    @Test func `A declined invitation reports the reason and the retry time`() throws {
        let (puma, lynx) = try network.meet(accepting: false)
        lynx.reaction = { event, _ in
            if case .invited(let invitation) = event {
                invitation.decline(because: "supper first", retryAfter: .seconds(600))
            }
        }
        try network.invite(lynx, from: puma)
        let error = try #require(puma.failure)
        #expect(error.cause == .declined("supper first", retryAfter: .seconds(600)))
        #expect(error.description.contains("declined: supper first") && error.description.contains("600 s"))
        #expect(puma.states(of: lynx.id) == [.available, .connecting, .available])
        #expect(puma.lastCause(of: lynx.id)?.cause == error.cause)
        #expect(lynx.statistics.refusals.isEmpty == false)
    }

    // MARK: Time

    @Test(arguments: [nil, 20] as [Int64?])
    func `An unanswered invitation times out on both sides, by default after 30 s`(seconds: Int64?) throws {
        let (puma, lynx) = try network.meet(accepting: false)
        if let seconds { puma.invite(lynx, timeout: .seconds(seconds)) } else { puma.invite(lynx) }
        try network.run(for: .milliseconds((seconds ?? 30) * 1_000 - 1))
        #expect(puma.outcomes.isEmpty)
        try network.run(for: .milliseconds(2))
        #expect(puma.outcomes.count == 1 && puma.failure?.cause == .timedOut)
        try network.run(for: .seconds(1))
        #expect(lynx.endedInvitations.count == 1)
        // A late answer has no effect.
        try #require(lynx.invitations.first).accept()
        try network.run(for: .seconds(1))
        #expect(lynx.state(of: puma.id) == .available)
    }

    @Test func `The invited side never times out first`() throws {
        let puma = network.join("Puma", plan: try FaultPlan(parsing: "dial-delay=100500us"))
        let lynx = network.join("Lynx", accepting: false)
        try network.run(for: .seconds(1))
        puma.invite(lynx, timeout: .milliseconds(400))
        try network.run(for: .microseconds(399_900))
        #expect(puma.outcomes.isEmpty)
        try network.run(for: .milliseconds(1))
        #expect(puma.failure?.cause == .timedOut)
    }

    /// The invited side's loop may nonetheless be the first to notice the timeout.
    @Test func `An invitation that the other side has abandoned times out`() throws {
        let hub = MemoryHub()
        let networks = [SimulatedNetwork(seed: 0), SimulatedNetwork(seed: 1)]
        let probes = networks.map { $0.join(accepting: false, through: { _ in MemoryTransport(hub: hub) }) }
        func runBoth() throws {
            for _ in 0..<20 { for network in networks { try network.run(for: .milliseconds(1)) } }
        }
        try runBoth()
        probes[0].invite(probes[1], timeout: .milliseconds(400))
        try runBoth()
        #expect(probes[1].invitations.count == 1)
        try networks[1].run(for: .milliseconds(400))
        try networks[0].loop.runQueued()
        #expect(probes[0].failure?.cause == .timedOut)
    }

    @Test func `A call by address fails in time, also if something accepts there and says nothing`() throws {
        let peer = try ScriptedPeer()
        peer.probe.invite(at: ScriptedPeer.address, timeout: .seconds(1))
        try peer.loop.runQueued()
        try peer.openDialled()
        try peer.run(.milliseconds(999))
        #expect(peer.outcomes.isEmpty)
        try peer.run(.milliseconds(1))
        #expect(peer.failure?.cause == .timedOut && peer.failure?.stage == .greeting)
        #expect(peer.transport.calls.contains { $0.hasPrefix("close ") })
    }

    @Test func `An invitation fails 2 s after its transport was asked for places and named none`() throws {
        let peer = try ScriptedPeer()
        peer.transport.findsPlaces = false
        peer.probe.invite(at: ScriptedPeer.address)
        try peer.loop.runQueued()
        // A pipe that breaks without proof may hide other places.
        try peer.openDialled()
        try peer.cut()
        try peer.run(.milliseconds(1_999))
        #expect(peer.outcomes.isEmpty)
        try peer.run(.milliseconds(1))
        #expect(peer.outcomes.count == 1 && peer.failure != nil)
    }

    @Test func `Other places are looked for when a pipe has proven nothing for 2 s, not before`() throws {
        let peer = try ScriptedPeer()
        peer.transport.findsPlaces = false
        for place in ["here", "there"] { peer.find(at: ScriptedTransport.address(place)) }
        peer.session.invite(ScriptedPeer.peer) { _ in }
        try peer.run(.seconds(1))
        try peer.openDialled()
        // Meanwhile the other route is due.
        try peer.run(.milliseconds(1_999))
        #expect(peer.dials.count == 2 && peer.transport.foundPlaces == nil)
        try peer.run(.milliseconds(1))
        #expect(peer.transport.foundPlaces != nil)
    }

    @Test(arguments: [false, true])
    func `A cancelled invitation ends on both sides`(byToken: Bool) throws {
        let (puma, lynx) = try network.meet(accepting: false)
        try network.invite(lynx, from: puma)
        if byToken {
            let token = try #require(puma.invitingCalls(to: lynx).first)
            puma.session.driver.inTurn { puma.machine.cancel(token, now: network.loop.now) }
        } else {
            puma.session.cancelInvitation(of: lynx.id)
        }
        try network.run(for: .seconds(1))
        #expect(puma.failure?.cause == .cancelled && puma.state(of: lynx.id) == .available)
        #expect(lynx.endedInvitations.map(\.cause) == [.cancelled])
    }

    // MARK: Room

    @Test func `A program that accepts one peer too many learns that there is no room`() throws {
        let host = network.join("Host", accepting: false) { $0.limits.peers = 1 }
        let guests = (0..<2).map { network.join("Guest\($0)") }
        try network.run(for: .seconds(1))
        for guest in guests { guest.invite(host) }
        try network.run(for: .seconds(1))
        try #require(host.invitations.count == 2)
        for invitation in host.invitations { invitation.accept() }
        try network.run(for: .seconds(1))
        #expect(host.endedInvitations.map(\.invitation.peer.id) == [host.invitations[1].peer.id])
        #expect(host.endedInvitations.map(\.cause) == [.limit("peers", 1)])
        #expect(guests.count { $0.failure?.cause == .full } == 1)
    }

    @Test func `Too many waiting invitations are refused as busy`() throws {
        let host = network.join("Host", accepting: false) { $0.limits.pendingInvitations = 2 }
        let guests = (0..<3).map { network.join("Guest\($0)") }
        try network.run(for: .seconds(1))
        for guest in guests { guest.invite(host) }
        try network.run(for: .seconds(1))
        #expect(host.invitations.count == 2)
        #expect(guests.compactMap { $0.failure?.cause } == [.busy])
        #expect(guests.compactMap { $0.failure?.retryAfter } == [.seconds(2)])
    }

    @Test func `A session with too many peers closes another link with the reason`() throws {
        let host = network.join("Host", role: .server)
        let guest = network.join("Guest", role: .server) { $0.limits.knownPeers = 0 }
        try network.run(for: .seconds(1))
        try network.invite(at: host.address, from: guest)
        #expect(guest.failure?.cause == .limit("known peers", 0))
        #expect(guest.session.inspection.links == 0 && host.session.inspection.links == 0)
    }

    @Test func `An address at which there was no room is forgotten`() throws {
        let puma = network.join("Puma", role: .server) { $0.limits.peers = 1 }
        let others = ["Lynx", "Wolf"].map { network.join($0, role: .server) }
        try network.run(for: .seconds(1))
        for other in others { try network.invite(at: other.address, from: puma) }
        #expect(puma.outcomes.count == 2)
        #expect(others.map { puma.state(of: $0.id) } == [.connected, .unavailable])
        #expect(puma.states(of: others[1].id).last == .unavailable)
    }

    // MARK: Addresses and errors

    /// With only one route, its own error says more than an error about all routes.
    @Test func `The error of the only route is the error of the invitation, and each is counted`() throws {
        let (puma, lynx) = try network.meet()
        puma.faults.block(dials: .refuse)
        for _ in 1...3 { try network.invite(lynx, from: puma) }
        let error = try #require(puma.failure)
        #expect(error.cause == .refused && error.stage == .connecting && error.transport == "memory")
        #expect(error.attempts.isEmpty && puma.statistics.dialsFailed == ["refused": 3])
    }

    @Test(
        arguments: [
            ("memory", "nobody", .refused),
            ("smoke", "hill", .unavailable("this session has no transport \"smoke\"")),
            ("memory", "Puma-1", .selfDial), ("memory", "Copy-2", .sameIdentity),
            ("memory", "Stranger-3", .wrongService("other")),
        ] as [(String, String, NighError.Cause)])
    func `An address without a peer to talk to is reported with the reason`(
        _ scheme: String, _ value: String, _ cause: NighError.Cause
    ) throws {
        let puma = network.join("Puma")
        network.join("Copy", number: 1)
        let stranger = network.join("Stranger") { $0.service = "other" }
        try network.run(for: .seconds(1))
        #expect(puma.state(of: stranger.id) == .unavailable)
        try network.invite(at: TransportAddress(scheme: scheme, value: value), from: puma)
        #expect(puma.failure?.cause == cause)
        if cause == .selfDial { #expect(puma.machine.peers.isEmpty && puma.machine.links.isEmpty) }
    }

    @Test func `An unknown peer can be neither invited nor paired`() throws {
        let puma = network.join("Puma")
        let unknown = Identity.ephemeral(seed: 77).peerID
        puma.session.invite(unknown) { puma.outcomes.append($0) }
        #expect(puma.failure?.stage == .inviting && puma.failure?.cause == .unknownPeer)
        puma.session.pair(unknown) { puma.outcomes.append($0) }
        #expect(puma.failure?.stage == .pairing && puma.failure?.cause == .unknownPeer)
    }

    @Test func `A context beyond its limit is refused before anything is sent`() throws {
        let (puma, lynx) = try network.meet()
        puma.invite(lynx, context: [UInt8](repeating: 1, count: 4_097))
        #expect(puma.failure?.cause == .limit("invitation context", 4_096))
        #expect(puma.state(of: lynx.id) == .available)
    }
}

/// Calls that invite a peer which is being invited already. They share the invitation, but each has its own time.
@Suite struct JoinedInvitationTests {
    private let network = SimulatedNetwork()

    /// The moments at which calls were answered, in milliseconds from the first, and the outcomes.
    private final class Answers: @unchecked Sendable {
        // Confined to the virtual loop.
        var times: [String: Int] = [:]
        var outcomes: [String: Result<PeerID, NighError>] = [:]

        func failed(_ call: String, _ cause: NighError.Cause = .timedOut, at time: Int) -> Bool {
            guard case .failure(let error)? = outcomes[call] else { return false }
            return error.cause == cause && times[call] == time
        }
    }

    private let answers = Answers()

    private func note(_ call: String) -> @Sendable (Result<PeerID, NighError>) -> Void {
        let (answers, loop, start) = (answers, network.loop, network.loop.now)
        return {
            answers.times[call] = Int((loop.now - start).nanoseconds / 1_000_000)
            answers.outcomes[call] = $0
        }
    }

    @Test(arguments: [false, true])
    func `A call that joins a longer invitation is answered in its own time`(byAddress: Bool) throws {
        let (puma, lynx) = try network.meet(accepting: false)
        puma.session.invite(lynx.id, timeout: .seconds(9), completion: note("patient"))
        try network.run(for: .seconds(1))
        if byAddress {
            puma.session.invite(at: lynx.address, timeout: .seconds(2), completion: note("impatient"))
        } else {
            puma.session.invite(lynx.id, timeout: .seconds(2), completion: note("impatient"))
        }
        try network.run(for: .seconds(5))
        #expect(answers.failed("impatient", at: 2_000))
        #expect(answers.outcomes["patient"] == nil && lynx.endedInvitations.isEmpty, "the other goes on")
        try #require(lynx.invitations.first).accept()
        try network.run(for: .seconds(1))
        #expect(answers.outcomes["patient"] == .success(lynx.id) && lynx.invitations.count == 1)
    }

    @Test func `A call that joins a shorter invitation keeps its own time: the peer is asked again`() throws {
        let (puma, lynx) = try network.meet(accepting: false)
        puma.session.invite(lynx.id, timeout: .seconds(2), completion: note("impatient"))
        try network.run(for: .seconds(1))
        puma.session.invite(lynx.id, timeout: .seconds(6), completion: note("patient"))
        try network.run(for: .seconds(3))
        #expect(answers.failed("impatient", at: 2_000) && answers.outcomes["patient"] == nil)
        #expect(lynx.invitations.count == 2 && lynx.endedInvitations.count == 1)
        #expect(puma.states(of: lynx.id) == [.available, .connecting], "one invitation for its program")
        try network.run(for: .milliseconds(2_999))
        #expect(answers.outcomes["patient"] == nil)
        try network.run(for: .milliseconds(2))
        #expect(answers.failed("patient", at: 6_000))
        try network.run(for: .seconds(1))
        #expect(lynx.invitations.count == 2 && lynx.endedInvitations.count == 2)
        #expect(puma.state(of: lynx.id) == .available)
    }

    @Test func `A peer that accepts when its time is over here, but not there, is connected`() throws {
        let (puma, lynx) = try network.meet(accepting: false)
        puma.session.invite(lynx.id, timeout: .seconds(2), completion: note("impatient"))
        try network.run(for: .seconds(1))
        puma.session.invite(lynx.id, timeout: .seconds(6), completion: note("patient"))
        let invitation = try #require(lynx.invitations.first)
        puma.faults.plan.delay = .milliseconds(300)
        try network.run(for: .milliseconds(999))
        invitation.accept()
        try network.run(for: .seconds(2))
        #expect(answers.failed("impatient", at: 2_000))
        #expect(answers.outcomes["patient"] == .success(lynx.id))
        #expect(lynx.states(of: puma.id).suffix(2) == [.connecting, .connected])
        #expect(lynx.invitations.count == 1)
    }

    @Test func `A cancelled call fails at once, and the invitation ends with the last one that waits`() throws
    {
        let (puma, lynx) = try network.meet(accepting: false)
        puma.session.invite(lynx.id, timeout: .seconds(9), completion: note("cancelled"))
        puma.session.invite(lynx.id, timeout: .seconds(2), completion: note("impatient"))
        try network.run(for: .seconds(1))
        let calls = puma.invitingCalls(to: lynx)
        try #require(calls.count == 2)
        puma.session.driver.inTurn { puma.machine.cancel(calls[0], now: network.loop.now) }
        #expect(answers.failed("cancelled", .cancelled, at: 1_000) && answers.outcomes["impatient"] == nil)
        try network.run(for: .seconds(2))
        #expect(answers.failed("impatient", at: 2_000))
        #expect(lynx.endedInvitations.count == 1 && puma.state(of: lynx.id) == .available)
    }

    @Test func `An invitation that finds no link uses the one of a call by address`() throws {
        let (puma, lynx) = try network.meet()
        puma.faults.plan.hang = .all
        puma.session.invite(lynx.id, timeout: .seconds(9), completion: note("by name"))
        try network.run(for: .seconds(1))
        puma.faults.plan.hang = nil
        puma.session.invite(at: lynx.address, timeout: .seconds(2), completion: note("by address"))
        try network.run(for: .seconds(1))
        #expect(answers.outcomes["by address"] == .success(lynx.id))
        #expect(answers.outcomes["by name"] == .success(lynx.id))
        #expect(puma.session.inspection.links == 1 && lynx.session.inspection.links == 1)
    }
}

extension SessionProbe {
    /// The calls that wait for an invitation of the peer.
    fileprivate func invitingCalls(to peer: SessionProbe) -> [CallToken] {
        guard case .inviting(let invitation)? = machine.peers[peer.id]?.phase else { return [] }
        return invitation.calls.map(\.token)
    }
}
