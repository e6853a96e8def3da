import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Cases that simulated worlds have found. Each needs several events at the wrong moment.
@Suite struct UnluckyTimingTests {
    @Test func leavingReportsThatThePeerLeftFirst() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        puma.faults.stall(.all, .outgoing)
        try puma.session.trySend([UInt8](repeating: 1, count: 5_000), to: lynx.id)
        puma.session.disconnect(lynx.id) { [weak puma] in puma?.outcomes.append($0) }
        lynx.session.disconnect(puma.id)
        try place.run(.seconds(1))
        #expect(puma.lastCause(of: lynx.id)?.cause == .peerLeft)
        #expect(puma.outcomes.count == 2)
        guard case .failure(let error) = puma.outcomes[1] else {
            Issue.record("5,000 bytes never arrived, and nobody says so")
            return
        }
        #expect(error.stage == .sending)
    }

    @Test func linksThatBreakAtOnceAreNotDialledWithoutPause() throws {
        var plan = FaultPlan()
        plan.cutAfterBytes = 3_000
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair(plan: plan)
        try puma.session.trySend([UInt8](repeating: 1, count: 10_000), to: lynx.id)
        try place.run(.seconds(20))
        let breaks = puma.states(of: lynx.id).filter { $0 == .reconnecting }.count
        #expect(breaks > 3)
        #expect(breaks < 30)
        puma.faults.plan = .none
        lynx.faults.plan = .none
        try place.run(.seconds(4))
        #expect(lynx.messages.map(\.bytes.count) == [10_000])
    }

    @Test func anAcceptanceThatCrossesTheCancellationIsIgnored() throws {
        var plan = FaultPlan()
        plan.delay = .milliseconds(50)
        let place = Neighbourhood()
        let puma = place.join("puma", plan: plan)
        let lynx = place.join("lynx", plan: plan)
        try place.run(.seconds(1))
        puma.invite(lynx)
        let isAccepted = try place.loop.run(
            until: { lynx.state(of: puma.id) == .connected }, within: .seconds(5))
        #expect(isAccepted)
        puma.session.cancelInvitation(of: lynx.id)
        try place.run(.seconds(5))
        #expect(lynx.states(of: puma.id) == [.available, .connecting, .connected, .disconnected, .available])
        #expect(lynx.lastCause(of: puma.id)?.cause == .peerLeft)
        #expect(puma.state(of: lynx.id) == .available)
    }

    @Test func roomMadeDuringTheHellosIsReported() throws {
        var plan = FaultPlan()
        plan.delay = .milliseconds(100)
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair(.inbox, plan: plan) { $0.limits.receiveWindow = 8_192 }
        // The greeting takes longer than a second, so this waits until they are connected.
        _ = try place.loop.run(until: { puma.state(of: lynx.id) == .connected }, within: .seconds(5))
        for _ in 0..<60 { try lynx.session.trySend([UInt8](repeating: 1, count: 1_000), to: puma.id) }
        try place.run(.seconds(2))
        puma.faults.cut()
        // The dialling side has reported its room, and waits for the answer.
        try place.run(.milliseconds(700))
        #expect(puma.state(of: lynx.id) == .reconnecting)
        var count = 0
        while puma.session.messages.poll() != nil { count += 1 }
        #expect(count > 5)
        for _ in 0..<30 {
            try place.run(.milliseconds(500))
            while puma.session.messages.poll() != nil { count += 1 }
        }
        #expect(count == 60)
    }

    @Test func anAddressThatFailedIsForgotten() throws {
        let place = Neighbourhood()
        let puma = place.join("puma", role: .server) { $0.limits.peers = 1 }
        let lynx = place.join("lynx", role: .server)
        let wolf = place.join("wolf", role: .server)
        try place.run(.seconds(1))
        for other in [lynx, wolf] {
            puma.session.invite(at: other.address) { [weak puma] in puma?.outcomes.append($0) }
            try place.run(.seconds(1))
        }
        #expect(puma.outcomes.count == 2)
        #expect(puma.state(of: lynx.id) == .connected)
        #expect(puma.state(of: wolf.id) == .unavailable)
        #expect(puma.states(of: wolf.id).last == .unavailable)
    }

    @Test func unreadMessagesCountInTheNextConversation() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair(.inbox) { configuration in
            configuration.limits.receiveWindow = 32_768
            configuration.limits.frame = 8_192
        }
        for _ in 0..<30 { try lynx.session.trySend([UInt8](repeating: 1, count: 1_000), to: puma.id) }
        try place.run(.seconds(1))
        lynx.session.disconnect(puma.id)
        try place.run(.seconds(1))
        puma.invite(lynx)
        try place.run(.seconds(1))
        for _ in 0..<60 { try lynx.session.trySend([UInt8](repeating: 2, count: 1_000), to: puma.id) }
        var count = 0
        for _ in 0..<20 {
            try place.run(.milliseconds(500))
            while puma.session.messages.poll() != nil { count += 1 }
        }
        #expect(count == 90)
        #expect(puma.state(of: lynx.id) == .connected)
    }

    @Test func aPendingInvitationOccupiesItsPipe() throws {
        let place = Neighbourhood()
        let lynx = place.join("lynx", accepting: false) { $0.limits.unauthenticatedPipes = 1 }
        let puma = place.join("puma")
        let wolf = place.join("wolf")
        try place.run(.seconds(1))
        for other in [puma, wolf] {
            other.invite(lynx)
            try place.run(.seconds(1))
        }
        #expect(lynx.invitations.count == 1)
        #expect(lynx.statistics.pipesRefused == 1)
        lynx.invitations[0].decline()
        #expect(lynx.session.inspection.strangers <= 1)
    }
}
