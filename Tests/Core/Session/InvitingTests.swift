import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite struct InvitingTests {
    /// With only one route, its own error says more than an error about all routes.
    @Test func theErrorOfTheOnlyRouteIsTheErrorOfTheInvitation() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        let lynx = place.join("Lynx")
        try place.run(.seconds(1))
        puma.faults.plan.refuse = .all
        puma.invite(lynx)
        try place.run(.seconds(1))
        let error = try #require(puma.failure)
        #expect(error.cause == .refused)
        #expect(error.stage == .connecting)
        #expect(error.transport == "memory")
        #expect(error.attempts.isEmpty)
    }

    @Test func anInvitationSaysWhoHasIntroducedTheInviter() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        let lynx = place.join("Lynx", accepting: false)
        try place.run(.seconds(1))
        puma.session.invite(lynx.id, introduction: [1, 2, 3], timeout: .seconds(5)) {
            puma.outcomes.append($0)
        }
        try place.run(.seconds(1))
        let invitation = try #require(lynx.invitations.first)
        #expect(invitation.introduction == [1, 2, 3])
        invitation.accept()
        try place.run(.seconds(1))
        #expect(puma.outcomes == [.success(lynx.id)])
    }

    @Test func aSessionWithTooManyPeersClosesAnotherLinkWithTheReason() throws {
        let place = Neighbourhood()
        let host = place.join("Host", role: .server)
        let guest = place.join("Guest", role: .server) { $0.limits.knownPeers = 0 }
        try place.run(.seconds(1))
        guest.session.invite(at: host.address) { guest.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(guest.failure?.cause == .limit("known peers", 0))
        #expect(guest.session.inspection.links == 0 && host.session.inspection.links == 0)
    }

    /// Two tasks wait for the same invitation. The call that gives up fails at once; the other one connects.
    @Test func aCancelledInviteFailsWhileTheOtherCallStillWaits() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        let lynx = place.join("Lynx", accepting: false)
        try place.run(.seconds(1))
        puma.invite(lynx)
        puma.invite(lynx)
        try place.run(.seconds(1))
        let driver = puma.session.driver
        let calls = try #require(driver.machine.peers[lynx.id]?.outgoingInvitation).calls
        #expect(calls.count == 2)
        driver.inTurn { driver.machine.cancel(calls[0].token, now: place.loop.now) }
        #expect(puma.outcomes.count == 1)
        #expect(puma.failure?.cause == .cancelled)
        try #require(lynx.invitations.first).accept()
        try place.run(.seconds(1))
        #expect(puma.outcomes.count == 2)
        #expect(puma.outcomes.last == .success(lynx.id))
    }

    @Test func anInvitationWithoutWaitingCallsIsCancelled() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        let lynx = place.join("Lynx", accepting: false)
        try place.run(.seconds(1))
        puma.invite(lynx)
        try place.run(.seconds(1))
        let driver = puma.session.driver
        let token = try #require(driver.machine.peers[lynx.id]?.outgoingInvitation?.calls.first).token
        driver.inTurn { driver.machine.cancel(token, now: place.loop.now) }
        try place.run(.seconds(1))
        #expect(puma.failure?.cause == .cancelled)
        #expect(puma.state(of: lynx.id) == .available)
        #expect(lynx.endedInvitations.map(\.cause) == [.cancelled])
    }

    @Test func theInvitedProgramSeesTheInviterAndItsContext() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        let lynx = place.join("Lynx", accepting: false)
        try place.run(.seconds(1))
        puma.session.invite(lynx.id, context: Array("table 7".utf8)) { puma.outcomes.append($0) }
        try place.run(.seconds(1))
        let invitation = try #require(lynx.invitations.first)
        #expect(invitation.peer.id == puma.id)
        #expect(invitation.peer.name == "Puma")
        #expect(invitation.context == Array("table 7".utf8))
        #expect(invitation.transport == "memory")
        #expect(puma.state(of: lynx.id) == .connecting)
        #expect(lynx.state(of: puma.id) == .available)
        #expect(puma.outcomes.isEmpty)

        invitation.accept()
        try place.run(.seconds(1))
        #expect(puma.outcomes == [.success(lynx.id)])
        #expect(lynx.state(of: puma.id) == .connected)
    }

    @Test func decliningReportsTheReasonAndTheRetryTime() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        let lynx = place.join("Lynx", accepting: false)
        lynx.reaction = { event, session in
            if case .invited(let invitation) = event {
                invitation.decline(because: "supper first", retryAfter: .seconds(600))
            }
        }
        try place.run(.seconds(1))
        puma.session.invite(lynx.id) { puma.outcomes.append($0) }
        try place.run(.seconds(1))
        guard case .failure(let error) = try #require(puma.outcomes.first) else {
            Issue.record("the invitation was accepted")
            return
        }
        #expect(error.cause == .declined("supper first", retryAfter: .seconds(600)))
        #expect(error.description.contains("declined: supper first"))
        #expect(error.description.contains("600 s"))
        #expect(puma.states(of: lynx.id) == [.available, .connecting, .available])
        #expect(puma.lastCause(of: lynx.id)?.cause == .declined("supper first", retryAfter: .seconds(600)))
        #expect(lynx.statistics.refusals.isEmpty == false)
    }

    @Test func anUnansweredInvitationTimesOutOnBothSides() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        let lynx = place.join("Lynx", accepting: false)
        try place.run(.seconds(1))
        puma.session.invite(lynx.id, timeout: .seconds(20)) { puma.outcomes.append($0) }
        try place.run(.seconds(19))
        #expect(puma.outcomes.isEmpty)
        try place.run(.seconds(2))
        #expect(puma.outcomes.count == 1)
        guard case .failure(let error)? = puma.outcomes.first else { return }
        #expect(error.cause == .timedOut)
        let ended = lynx.events.contains { if case .invitationEnded = $0 { true } else { false } }
        #expect(ended)
        // A late answer has no effect.
        if let invitation = lynx.invitations.first { invitation.accept() }
        try place.run(.seconds(1))
        #expect(lynx.state(of: puma.id) == .available)
    }

    @Test func theInvitedSideNeverTimesOutFirst() throws {
        let place = Neighbourhood()
        var plan = FaultPlan()
        plan.dialDelay = .microseconds(100_500)
        let puma = place.join("Puma", plan: plan)
        let lynx = place.join("Lynx", accepting: false)
        try place.run(.seconds(1))
        puma.session.invite(lynx.id, timeout: .milliseconds(400)) { puma.outcomes.append($0) }
        try place.run(.microseconds(399_900))
        #expect(puma.outcomes.isEmpty)
        try place.run(.milliseconds(1))
        guard case .failure(let error)? = puma.outcomes.first else {
            Issue.record("it did not time out")
            return
        }
        #expect(error.cause == .timedOut)
    }

    /// The invited side's loop may nonetheless be the first to notice the timeout.
    @Test func anInvitationThatTheOtherSideAbandonedTimesOut() throws {
        let hub = MemoryHub()
        let loops = [VirtualEventLoop(), VirtualEventLoop()]
        let probes = loops.enumerated().map { number, loop in
            var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: "\(number)"))
            configuration.seed = UInt64(number)
            let transport = FaultyTransport(MemoryTransport(hub: hub))
            let session = Session(
                configuration, identity: .ephemeral(seed: UInt64(number)), transports: [transport], loop: loop
            )
            let probe = SessionProbe(number: number, session: session, faults: transport.control)
            probe.start(reading: .handler, accepting: false)
            return probe
        }
        func runBoth() throws {
            for _ in 0..<20 { for loop in loops { try loop.run(for: .milliseconds(1)) } }
        }
        try runBoth()
        probes[0].session.invite(probes[1].id, timeout: .milliseconds(400)) { probes[0].outcomes.append($0) }
        try runBoth()
        #expect(probes[1].invitations.count == 1)
        try loops[1].run(for: .milliseconds(400))
        try loops[0].runQueued()
        guard case .failure(let error)? = probes[0].outcomes.first else {
            Issue.record("it did not time out")
            return
        }
        #expect(error.cause == .timedOut)
    }

    @Test func cancellingAnInvitationEndsItOnTheOtherSide() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        let lynx = place.join("Lynx", accepting: false)
        try place.run(.seconds(1))
        puma.session.invite(lynx.id) { puma.outcomes.append($0) }
        try place.run(.seconds(1))
        puma.session.cancelInvitation(of: lynx.id)
        try place.run(.seconds(1))
        guard case .failure(let error)? = puma.outcomes.first else {
            Issue.record("no outcome")
            return
        }
        #expect(error.cause == .cancelled)
        let causes = lynx.events.compactMap {
            if case .invitationEnded(_, let cause) = $0 { cause.cause } else { nil }
        }
        #expect(causes == [.cancelled])
        #expect(puma.state(of: lynx.id) == .available)
    }

    @Test func crossingInvitationsBecomeOneConnectionWithoutAnAnswer() throws {
        for round in 0..<50 {
            let place = Neighbourhood()
            var plan = FaultPlan()
            plan.delay = .milliseconds(20)
            let puma = place.join("Puma", seed: UInt64(100 + round), accepting: false, plan: plan)
            let lynx = place.join("Lynx", seed: UInt64(900 + round), accepting: false, plan: plan)
            try place.run(.seconds(1))
            puma.session.invite(lynx.id, context: [1]) { puma.outcomes.append($0) }
            try place.run(.milliseconds(Int64(round * 3)))
            lynx.session.invite(puma.id, context: [2]) { lynx.outcomes.append($0) }
            try place.run(.seconds(5))
            if puma.state(of: lynx.id) != .connected, let invitation = lynx.invitations.first {
                invitation.accept()
                try place.run(.seconds(1))
            }
            #expect(puma.outcomes == [.success(lynx.id)], "round \(round)")
            #expect(lynx.outcomes == [.success(puma.id)], "round \(round)")
            #expect(puma.invitingContexts == [[2]] && lynx.invitingContexts == [[1]], "round \(round)")
            #expect(puma.session.driver.machine.links.count == 1, "round \(round)")
            #expect(lynx.session.driver.machine.links.count == 1, "round \(round)")
        }
    }

    @Test("A call by address fails in time, also if something accepts there and says nothing")
    func silentAddress() throws {
        let peer = try ScriptedPeer()
        peer.session.invite(at: ScriptedPeer.address, timeout: .seconds(1)) { peer.outcomes.append($0) }
        try peer.loop.runQueued()
        try peer.openDialled()
        try peer.run(.milliseconds(999))
        #expect(peer.outcomes.isEmpty)
        try peer.run(.milliseconds(1))
        #expect(peer.failure?.cause == .timedOut && peer.failure?.stage == .greeting)
        #expect(peer.transport.calls.contains { $0.hasPrefix("close ") })
    }

    @Test("A program that accepts one peer too many learns that there is no room")
    func acceptingTooMany() throws {
        let place = Neighbourhood()
        let host = place.join("Host", accepting: false) { $0.limits.peers = 1 }
        let guests = (0..<2).map { place.join("Guest\($0)") }
        try place.run(.seconds(1))
        for guest in guests { guest.invite(host) }
        try place.run(.seconds(1))
        let invitations = host.events.compactMap { event -> Invitation? in
            if case .invited(let invitation) = event { invitation } else { nil }
        }
        try #require(invitations.count == 2)
        for invitation in invitations { invitation.accept() }
        try place.run(.seconds(1))
        let ended = host.events.compactMap { event -> (PeerID, NighError.Cause?)? in
            if case .invitationEnded(let invitation, let error) = event {
                (invitation.peer.id, error.cause)
            } else {
                nil
            }
        }
        #expect(ended.map(\.0) == [invitations[1].peer.id] && ended.first?.1 == .limit("peers", 1))
        #expect(guests.map(\.failure?.cause).filter { $0 == .full }.count == 1)
    }

    @Test func aFullSessionRefusesInvitationsWithThatReason() throws {
        let place = Neighbourhood()
        let host = place.join("Host") { $0.limits.peers = 1 }
        let first = place.join("First")
        let second = place.join("Second")
        try place.run(.seconds(1))
        first.session.invite(host.id) { first.outcomes.append($0) }
        try place.run(.seconds(1))
        second.session.invite(host.id) { second.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(first.outcomes == [.success(host.id)])
        guard case .failure(let error)? = second.outcomes.first else {
            Issue.record("a second guest was let in")
            return
        }
        #expect(error.cause == .full && error.retryAfter == .seconds(2))
        #expect(host.statistics.refusals["full"] == 1)

        first.session.disconnect(host.id)
        try place.run(.seconds(1))
        second.session.invite(host.id) { second.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(second.outcomes.last == .success(host.id))
    }

    @Test func tooManyWaitingInvitationsAreRefusedAsBusy() throws {
        let place = Neighbourhood()
        let host = place.join("Host", accepting: false) { $0.limits.pendingInvitations = 2 }
        let guests = (0..<3).map { place.join("Guest\($0)") }
        try place.run(.seconds(1))
        for guest in guests { guest.invite(host) }
        try place.run(.seconds(1))
        #expect(host.invitations.count == 2)
        let refused = guests.compactMap { guest -> NighError.Cause? in
            if case .failure(let error)? = guest.outcomes.first { error.cause } else { nil }
        }
        #expect(refused == [.busy])
        #expect(guests.compactMap { $0.failure?.retryAfter } == [.seconds(2)])
    }

    @Test func anAddressGivenByHandNeedsNoDiscovery() throws {
        let place = Neighbourhood()
        let host = place.join("Host", role: .server)
        let guest = place.join("Guest", role: .server)
        try place.run(.seconds(1))
        #expect(guest.state(of: host.id) == .unavailable)
        guest.session.invite(at: host.address) { guest.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(guest.outcomes == [.success(host.id)])
        #expect(guest.states(of: host.id) == [.available, .connecting, .connected])
        guest.session.disconnect(host.id)
        try place.run(.seconds(1))
        #expect(guest.states(of: host.id).suffix(2) == [.disconnected, .unavailable])
    }

    @Test func anAddressWithoutListenerIsReportedAsRefused() throws {
        let place = Neighbourhood()
        let guest = place.join("Guest")
        guest.session.invite(at: TransportAddress(scheme: "memory", value: "nobody")) {
            guest.outcomes.append($0)
        }
        guest.session.invite(at: TransportAddress(scheme: "smoke", value: "hill")) {
            guest.outcomes.append($0)
        }
        try place.run(.seconds(1))
        let causes = guest.outcomes.compactMap {
            if case .failure(let error) = $0 { error.cause } else { nil }
        }
        #expect(causes.count == 2)
        #expect(causes.contains(.refused))
        #expect(causes.contains(.unavailable("this session has no transport \"smoke\"")))
    }

    @Test func aSessionThatInvitesItselfGetsAnError() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        try place.run(.seconds(1))
        puma.session.invite(at: puma.address) { puma.outcomes.append($0) }
        try place.run(.seconds(1))
        guard case .failure(let error)? = puma.outcomes.first else {
            Issue.record("connected to itself")
            return
        }
        #expect(error.cause == .selfDial)
        #expect(puma.session.driver.machine.peers.isEmpty)
        #expect(puma.session.driver.machine.links.isEmpty)
    }

    @Test func twoProgramsOfOneIdentityAreDistinguished() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma", seed: 5)
        let copy = place.join("Copy", seed: 5)
        try place.run(.seconds(1))
        puma.session.invite(at: copy.address) { puma.outcomes.append($0) }
        try place.run(.seconds(1))
        guard case .failure(let error)? = puma.outcomes.first else {
            Issue.record("connected to its own identity")
            return
        }
        #expect(error.cause == .sameIdentity)
    }

    @Test func anUnknownPeerCannotBeInvited() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        puma.session.invite(Identity.ephemeral(seed: 77).peerID) { puma.outcomes.append($0) }
        guard case .failure(let error)? = puma.outcomes.first else { return }
        #expect(error.cause == .unknownPeer)
    }

    @Test func aContextBeyondItsLimitIsRefusedBeforeAnythingIsSent() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        let lynx = place.join("Lynx")
        try place.run(.seconds(1))
        puma.session.invite(lynx.id, context: [UInt8](repeating: 1, count: 4_097)) {
            puma.outcomes.append($0)
        }
        guard case .failure(let error)? = puma.outcomes.first else { return }
        #expect(error.cause == .limit("invitation context", 4_096))
        #expect(puma.state(of: lynx.id) == .available)
    }

    @Test func aPeerOfAnotherServiceIsNotConnected() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        let lynx = place.join("Lynx") { $0.service = "other" }
        try place.run(.seconds(1))
        #expect(puma.state(of: lynx.id) == .unavailable)
        puma.session.invite(at: lynx.address) { puma.outcomes.append($0) }
        try place.run(.seconds(1))
        guard case .failure(let error)? = puma.outcomes.first else {
            Issue.record("connected across services")
            return
        }
        #expect([.wrongService("other"), .wrongService("test"), .wrongService("")].contains(error.cause))
    }

    @Test func anUnansweredInvitationLasts30Seconds() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        let lynx = place.join("Lynx", accepting: false)
        try place.run(.seconds(1))
        puma.invite(lynx)
        try place.run(.milliseconds(29_999))
        #expect(puma.outcomes.isEmpty)
        try place.run(.milliseconds(2))
        #expect(puma.failure?.cause == .timedOut)
    }

    @Test func eachDialThatFailsIsCountedOnce() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma")
        let lynx = place.join("Lynx")
        try place.run(.seconds(1))
        puma.faults.block(dials: .refuse)
        for _ in 1...3 {
            puma.invite(lynx)
            try place.run(.seconds(1))
        }
        #expect(puma.statistics.dialsFailed == ["refused": 3])
    }
}

extension PeerRecord {
    /// This session's request to the peer.
    fileprivate var outgoingInvitation: OutgoingInvitation? {
        if case .inviting(let invitation) = phase { invitation } else { nil }
    }
}

extension SessionProbe {
    /// What others have said when they invited, whether or not this side was asked.
    fileprivate var invitingContexts: [[UInt8]] {
        events.compactMap { event in
            switch event {
            case .invited(let invitation): invitation.context
            case .invitationsCrossed(_, let context): context
            default: nil
            }
        }
    }
}
