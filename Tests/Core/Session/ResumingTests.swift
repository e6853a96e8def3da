import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite struct ResumingTests {
    @Test func messagesOfBothSidesSurviveABrokenLink() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        for number in 0..<100 {
            try puma.session.trySend(Array("p\(number)".utf8), to: lynx.id)
            try lynx.session.trySend(Array("l\(number)".utf8), to: puma.id)
            if number % 10 == 5 {
                puma.faults.cut()
                try place.run(.milliseconds(number % 20 == 5 ? 0 : 3))
            }
        }
        try place.run(.seconds(30))
        #expect(lynx.texts == (0..<100).map { "p\($0)" })
        #expect(puma.texts == (0..<100).map { "l\($0)" })
        #expect(puma.states(of: lynx.id).contains(.reconnecting))
        #expect(puma.state(of: lynx.id) == .connected)
        #expect(lynx.state(of: puma.id) == .connected)
        #expect(try #require(puma.statistics.peers[lynx.id]).reconnects > 0)
    }

    @Test func unacknowledgedMessagesAreSentAgainAndCounted() throws {
        let place = Neighbourhood()
        var plan = FaultPlan()
        plan.delay = .milliseconds(40)
        let (puma, lynx) = try place.pair(plan: plan)
        for number in 0..<10 { try puma.session.trySend(Array("\(number)".utf8), to: lynx.id) }
        try place.run(.milliseconds(10))
        puma.faults.cut()
        try place.run(.seconds(5))
        #expect(lynx.texts == (0..<10).map { "\($0)" })
        #expect(try #require(puma.statistics.peers[lynx.id]).messagesResent == 10)
    }

    @Test func aLargeMessageCutInTheMiddleArrivesOnceAndWhole() throws {
        let place = Neighbourhood()
        var plan = FaultPlan()
        plan.bytesPerSecond = 512 << 10
        let (puma, lynx) = try place.pair(plan: plan) { $0.limits.sendBuffer = 8 << 20 }
        let large = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        try puma.session.trySend(large, to: lynx.id)
        try puma.session.trySend(Array("after".utf8), to: lynx.id)
        try place.run(.seconds(1))
        #expect(lynx.messages.isEmpty)
        lynx.faults.cut()
        try place.run(.seconds(30))
        #expect(lynx.messages.count == 2)
        #expect(lynx.messages.first?.bytes == large)
        #expect(lynx.texts.last == "after")
    }

    @Test func withoutARouteBothSidesAreDisconnectedAfterTheGrace() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        puma.faults.block()
        lynx.faults.block()
        puma.faults.cut()
        lynx.faults.cut()
        try place.run(.seconds(9))
        #expect(puma.state(of: lynx.id) == .reconnecting)
        try puma.session.trySend([1, 2, 3], to: lynx.id)
        try place.run(.seconds(3))
        #expect(puma.states(of: lynx.id).contains(.disconnected))
        #expect(lynx.states(of: puma.id).contains(.disconnected))
        let cause = try #require(puma.lastCause(of: lynx.id))
        #expect(cause.cause == .linkLost)
        #expect(throws: NighError.self) { try puma.session.trySend([4], to: lynx.id) }
    }

    @Test func aSilentPeerIsSuspectedThenLostInBoundedTime() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        try place.run(.seconds(60))
        #expect(puma.state(of: lynx.id) == .connected)
        #expect(!puma.events.contains { if case .peerUnresponsive = $0 { true } else { false } })
        puma.faults.stall()
        lynx.faults.stall()
        try place.run(.seconds(11))
        #expect(
            puma.events.contains {
                if case .peerUnresponsive(let peer) = $0 { peer.id == lynx.id } else { false }
            })
        #expect(puma.state(of: lynx.id) == .connected)
        try place.run(.seconds(5))
        #expect(puma.state(of: lynx.id) == .reconnecting)
    }

    /// What a member was told about the silence of another, in order.
    private func reports(of member: SessionProbe, about other: SessionProbe) -> [String] {
        member.events.compactMap { event in
            switch event {
            case .peerUnresponsive(let peer) where peer.id == other.id: "unresponsive"
            case .peerResponsive(let peer) where peer.id == other.id: "responsive"
            default: nil
            }
        }
    }

    @Test func anUnresponsivePeerThatAnswersIsReportedAsResponsive() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        for member in [puma, lynx] { member.faults.stall() }
        try place.run(.seconds(11))
        for member in [puma, lynx] { member.faults.release() }
        try place.run(.seconds(1))
        #expect(reports(of: puma, about: lynx) == ["unresponsive", "responsive"])
        #expect(puma.state(of: lynx.id) == .connected)
    }

    @Test(
        "A peer that responds again on another link is reported as responsive, whichever side has lost the link before",
        arguments: [false, true])
    func responsiveOnAnotherLink(isLostHere: Bool) throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        for member in [puma, lynx] {
            member.faults.stall(.pipe(try #require(member.faults.pipes.first).number))
        }
        try place.run(.seconds(11))
        lynx.faults.cut()
        if isLostHere { puma.faults.cut() }
        try place.run(.seconds(2))
        #expect(puma.states(of: lynx.id).contains(.reconnecting) == isLostHere)
        #expect(puma.state(of: lynx.id) == .connected)
        #expect(reports(of: puma, about: lynx) == ["unresponsive", "responsive"])
    }

    @Test func aRestartedPeerIsOnePeerAndEndsTheOldConversationAtOnce() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma", seed: 1)
        let lynx = place.join("Lynx", seed: 2)
        try place.run(.seconds(1))
        puma.session.invite(lynx.id) { _ in }
        try place.run(.seconds(1))
        lynx.faults.block()
        puma.faults.block(.address(lynx.address))
        let reborn = place.join("Lynx again", seed: 2)
        try place.run(.seconds(1))
        reborn.session.invite(puma.id) { reborn.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(reborn.outcomes == [.success(puma.id)])
        #expect(
            puma.states(of: lynx.id).suffix(4)
                == [.connected, .disconnected, .available, .connecting].suffix(4)
                || puma.state(of: lynx.id) == .connected)
        let causes = puma.events.compactMap { event -> NighError.Cause? in
            if case .disconnected(_, let error) = event { error.cause } else { nil }
        }
        #expect(causes == [.restarted])
        #expect(puma.session.driver.machine.peers.count == 1)
        try reborn.session.trySend(Array("new life".utf8), to: puma.id)
        try place.run(.seconds(1))
        #expect(puma.texts == ["new life"])
    }
}
