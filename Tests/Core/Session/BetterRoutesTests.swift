import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests that a conversation continues over the remaining route, and returns to a better one once that works again.
@Suite struct BetterRoutesTests {
    private let place = TwoWays()

    private func expectSound(_ members: TwoWays.Member..., at location: SourceLocation = #_sourceLocation) {
        for member in members {
            #expect(member.session.inconsistencies == [], sourceLocation: location)
            #expect(member.machine.links.count == 1, sourceLocation: location)
        }
    }

    /// Two members that are connected over the slow transport, because the fast one is down.
    private func pairOverSlow(
        plan: FaultPlan = .none, slowPlan: FaultPlan = .none,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (TwoWays.Member, TwoWays.Member) {
        let first = place.join(plan: plan, slowPlan: slowPlan, adjust: adjust)
        let second = place.join(adjust: adjust)
        place.cutFast(first, second)
        try place.connect(first, second)
        #expect(first.transport(to: second) == "slow")
        return (first, second)
    }

    /// Sends numbered messages in both directions, one pair every millisecond.
    private func talk(
        _ first: TwoWays.Member, _ second: TwoWays.Member, _ numbers: Range<Int>
    ) throws {
        for number in numbers {
            try first.session.trySend(Array("\(number)".utf8), to: second.id)
            try second.session.trySend(Array("\(number)".utf8), to: first.id)
            try place.run(.milliseconds(1))
        }
    }

    /// What arrived on the old link while it was held is delivered as soon as the move has failed, not with the next
    /// bytes.
    @Test func messagesReceivedDuringAFailedMoveAreDeliveredAtItsEnd() throws {
        let (first, second) = try pairOverSlow()
        let driver = first.session.driver
        let peer = try #require(first.machine.peers[second.id])
        let link = try #require(peer.link)
        driver.inTurn {
            link.isHeld = true
            first.machine.output(.hold(link))
        }
        try second.session.trySend(Array("meanwhile".utf8), to: first.id)
        try place.run(.milliseconds(100))
        #expect(first.probe.texts == [])
        driver.inTurn { first.machine.release(linkOf: peer) }
        try place.run(.milliseconds(10))
        #expect(first.probe.texts == ["meanwhile"])
        expectSound(first, second)
    }

    /// Packets travel beside the link, so they need not wait for what becomes of it.
    @Test func packetsArriveWhileTheLinkIsHeldForAMove() throws {
        let (first, second) = try pairOverSlow()
        try second.session.trySend([0], to: first.id, .unreliable)
        try place.run(.seconds(1))
        let peer = try #require(first.machine.peers[second.id])
        let link = try #require(peer.link)
        first.session.driver.inTurn { first.machine.hold(link) }
        // Longer than a path stays open without an answer.
        for number in 1...30 as ClosedRange<UInt8> {
            try second.session.trySend([number], to: first.id, .unreliable)
            try place.run(.milliseconds(50))
            #expect(first.probe.messages.map(\.bytes) == (0...number).map { [$0] })
        }
        #expect(link.isHeld && first.machine.deadline(of: link) == link.datagrams?.deadline)
        #expect(second.machine.peers[first.id]?.link?.datagrams?.isOpen == true)
        first.session.driver.inTurn { first.machine.release(linkOf: peer) }
        expectSound(first, second)
    }

    @Test func aConversationContinuesOnTheOtherTransportAndReturns() throws {
        var plan = FaultPlan()
        plan.delay = .milliseconds(5)
        let first = place.join(plan: plan, slowPlan: plan)
        let second = place.join()
        try place.connect(first, second)
        #expect(first.transport(to: second) == "fast")
        try talk(first, second, 0..<500)
        place.cutFast(first, second)
        try talk(first, second, 500..<1_500)
        #expect(first.transport(to: second) == "slow")
        place.restoreFast(first, second)
        try talk(first, second, 1_500..<15_000)
        try place.run(.seconds(20))
        for (member, other) in [(first, second), (second, first)] {
            #expect(member.transport(to: other) == "fast")
            #expect(member.reportedTransports(of: other) == ["fast", "slow", "fast"])
            #expect(member.probe.texts == (0..<15_000).map { "\($0)" })
            let moves = member.probe.states(of: other.id)
            #expect(moves == [.available, .connecting, .connected, .reconnecting, .connected])
        }
        expectSound(first, second)
    }

    @Test func theOtherTransportIsUsedWithinSecondsIfDialsGetNoAnswer() throws {
        let first = place.join()
        let second = place.join()
        try place.connect(first, second)
        place.cutFast(first, second, dials: .timeOut)
        let elapsed = try place.time { first.transport(to: second) == "slow" }
        #expect(elapsed <= 2_300)
        expectSound(first, second)
    }

    @Test func theOtherTransportIsUsedOnceASilentPeerIsLost() throws {
        let first = place.join()
        let second = place.join()
        try place.connect(first, second)
        for member in [first, second] { member.fast.block(dials: .timeOut) }
        try first.session.trySend(Array("unheard".utf8), to: second.id)
        let elapsed = try place.time { first.transport(to: second) == "slow" }
        #expect(elapsed <= 17_500)
        try place.run(.seconds(5))
        #expect(second.probe.texts == ["unheard"])
        expectSound(first, second)
    }

    @Test func aRouteThatAppearsDuringAnUnansweredDialIsUsed() throws {
        let first = place.join()
        let second = place.join()
        try place.connect(first, second)
        for member in [first, second] { member.session.driver.machine.routesLost(transport: 0) }
        place.cutFast(first, second, dials: .timeOut)
        try place.run(.seconds(3))
        #expect(first.probe.state(of: second.id) == .reconnecting)
        for member in [first, second] { member.session.startBrowsing() }
        let elapsed = try place.time { first.transport(to: second) == "slow" }
        #expect(elapsed <= 2_300)
    }

    @Test func simultaneousMovesEndWithOneLink() throws {
        for delay in 0..<40 {
            let place = TwoWays()
            var plan = FaultPlan()
            plan.delay = .milliseconds(delay)
            let first = place.join(plan: plan, slowPlan: plan)
            let second = place.join(slowPlan: plan)
            place.cutFast(first, second)
            try place.connect(first, second)
            place.restoreFast(first, second)
            for member in [first, second] {
                let other = member.id == first.id ? second.id : first.id
                let peer = try #require(member.machine.peers[other])
                member.session.driver.inTurn { member.machine.move(peer, now: place.loop.now) }
            }
            for number in 0..<300 {
                try first.session.trySend(Array("\(number)".utf8), to: second.id)
                try second.session.trySend(Array("\(number)".utf8), to: first.id)
                try place.run(.milliseconds(1))
            }
            try place.run(.seconds(3))
            for (member, other) in [(first, second), (second, first)] {
                #expect(member.reportedTransports(of: other) == ["slow", "fast"])
                #expect(member.probe.texts == (0..<300).map { "\($0)" })
                #expect(member.probe.states(of: other.id) == [.available, .connecting, .connected])
            }
            expectSound(first, second)
        }
    }

    @Test func aBetterRouteThatRefusesIsTriedWithBackOff() throws {
        let (first, second) = try pairOverSlow()
        func dials() -> Int { first.probe.statistics.dials + second.probe.statistics.dials }
        let before = dials()
        try place.run(.seconds(60))
        let soon = dials() - before
        #expect((3...12).contains(soon), "\(soon) dials in the first minute")
        try place.run(.seconds(600))
        let late = dials()
        try place.run(.seconds(600))
        #expect((4...16).contains(dials() - late), "\(dials() - late) dials in ten minutes")
        for (member, other) in [(first, second), (second, first)] {
            #expect(member.reportedTransports(of: other) == ["slow"])
            #expect(member.probe.states(of: other.id) == [.available, .connecting, .connected])
        }
        place.restoreFast(first, second)
        try place.run(.seconds(400))
        #expect(first.transport(to: second) == "fast")
        expectSound(first, second)
    }

    /// Two members on the slow transport, one of which has just asked to move to the fast one.
    private func pairThatMoves(
        slowPlan: FaultPlan = .none, adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (mover: TwoWays.Member, other: TwoWays.Member) {
        var plan = FaultPlan()
        plan.delay = .milliseconds(20)
        let (first, second) = try pairOverSlow(plan: plan, slowPlan: slowPlan, adjust: adjust)
        place.restoreFast(first, second)
        let isAsking = try place.time {
            [(first, second), (second, first)].contains {
                $0.machine.peers[$1.id]?.attempt?.requestSent ?? false
            }
        }
        #expect(isAsking < 5_000)
        let isFirst = first.machine.peers[second.id]?.attempt != nil
        return isFirst ? (first, second) : (second, first)
    }

    @Test func aMissingAnswerDelaysTheConversationForAtMostTwoSeconds() throws {
        let (mover, other) = try pairThatMoves()
        let (first, second) = (mover, other)
        // The request is on its way, and gets no answer.
        for member in [first, second] { member.fast.block() }
        try other.session.trySend(Array("waits".utf8), to: mover.id)
        try mover.session.trySend(Array("goes".utf8), to: other.id)
        try place.run(.milliseconds(1_900))
        #expect(mover.probe.texts == [])
        #expect(other.probe.texts == ["goes"])
        try place.run(.milliseconds(200))
        #expect(mover.probe.texts == ["waits"])
        #expect(mover.probe.states(of: other.id) == [.available, .connecting, .connected])
        #expect(mover.session.inconsistencies == [] && other.session.inconsistencies == [])
    }

    @Test func aBetterRouteThatKeepsBreakingIsUsedWithBackOff() throws {
        let (first, second) = try pairOverSlow()
        var waits: [Int] = []
        for _ in 0..<4 {
            place.restoreFast(first, second)
            waits.append(try place.time { first.transport(to: second) == "fast" })
            try place.run(.seconds(5))
            place.cutFast(first, second)
            try place.run(.seconds(1))
            #expect(first.transport(to: second) == "slow")
        }
        for (wait, next) in zip(waits, waits.dropFirst()) { #expect(next > wait, "\(waits)") }
        #expect(waits[3] > 15_000, "\(waits)")
    }

    @Test func aConversationReturnsToThePreviousTransportAtOnceIfTheBetterFails() throws {
        let (first, second) = try pairOverSlow()
        for _ in 0..<3 {
            place.restoreFast(first, second)
            let moved = try place.time {
                first.transport(to: second) == "fast" && second.transport(to: first) == "fast"
            }
            #expect(moved < .max)
            place.cutFast(first, second, dials: .timeOut)
            try first.session.trySend([1], to: second.id)
            let elapsed = try place.time { first.transport(to: second) == "slow" }
            #expect(elapsed <= 5)
        }
        try place.run(.milliseconds(100))
        #expect(second.probe.messages.count == 3)
        expectSound(first, second)
    }

    @Test func aRouteThatKeepsAppearingAndDisappearingIsNotDialled() throws {
        let (first, second) = try pairOverSlow()
        for member in [first, second] { member.fastTransport.stopBrowsing() }
        for (member, other) in [(first, second), (second, first)] {
            member.machine.removeRoutes(of: try #require(member.machine.peers[other.id])) {
                $0.address.scheme == "fast"
            }
        }
        place.restoreFast(first, second)
        let before = first.probe.statistics.dials + second.probe.statistics.dials
        for _ in 0..<20 {
            for (member, other) in [(first, second), (second, first)] {
                member.fastTransport.browse("test")
                try place.run(.seconds(1))
                member.fastTransport.stopBrowsing()
                member.session.driver.inTurn {
                    member.machine.removeRoutes(of: member.machine.peers[other.id]!) {
                        $0.address.scheme == "fast"
                    }
                }
            }
        }
        #expect(first.probe.statistics.dials + second.probe.statistics.dials == before)
    }

    @Test(arguments: [false, true]) func oneSideMayAloneSeeTheBetterRoute(greaterSees: Bool) throws {
        let isFirstGreater = Identity.ephemeral(seed: 1).peerID > Identity.ephemeral(seed: 2).peerID
        let first = place.join(seesFast: isFirstGreater == greaterSees)
        let second = place.join(seesFast: isFirstGreater != greaterSees)
        place.cutFast(first, second)
        try place.connect(first, second)
        #expect(first.transport(to: second) == "slow")
        place.restoreFast(first, second)
        try place.run(.seconds(20))
        #expect(first.transport(to: second) == "fast")
        #expect(second.transport(to: first) == "fast")
        expectSound(first, second)
    }

    @Test func aConversationDoesNotMoveBetweenTransportsOfEqualPriority() throws {
        let first = place.join(fastPriority: 200)
        let second = place.join(fastPriority: 200)
        place.cutFast(first, second)
        try place.connect(first, second)
        place.restoreFast(first, second)
        let dials = first.probe.statistics.dials + second.probe.statistics.dials
        try place.run(.seconds(300))
        #expect(first.probe.statistics.dials + second.probe.statistics.dials == dials)
        #expect(first.transport(to: second) == "slow")
    }

    @Test func aLargeMessageThatIsUnderWayArrivesOnceAndWhole() throws {
        var slowPlan = FaultPlan()
        slowPlan.bytesPerSecond = 1 << 20
        // Pieces keep arriving on the slow link while the request to move is in progress.
        var plan = FaultPlan()
        plan.delay = .milliseconds(20)
        let (first, second) = try pairOverSlow(plan: plan, slowPlan: slowPlan) {
            $0.limits.sendBuffer = 64 << 20
        }
        let large = [UInt8]((0..<16 << 20).lazy.map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 12) })
        place.restoreFast(first, second)
        for (member, other) in [(first, second), (second, first)] {
            try member.session.trySend(Array("before".utf8), to: other.id)
            try member.session.trySend(large, to: other.id)
            try member.session.trySend(Array("after".utf8), to: other.id)
        }
        try place.run(.seconds(12))
        for (member, other) in [(first, second), (second, first)] {
            #expect(member.reportedTransports(of: other) == ["slow", "fast"])
            #expect(member.probe.messages.map(\.bytes.count) == [6, 16 << 20, 5])
            #expect(member.probe.messages[1].bytes == large)
            #expect(member.probe.states(of: other.id) == [.available, .connecting, .connected])
        }
    }

    @Test func pingsAreAnsweredAcrossTheMove() throws {
        var plan = FaultPlan()
        plan.delay = .milliseconds(30)
        let (first, second) = try pairOverSlow(plan: plan, slowPlan: plan)
        place.restoreFast(first, second)
        nonisolated(unsafe) var answered = 0  // the loop is virtual: one thread
        for _ in 0..<1_500 {
            for (member, other) in [(first, second), (second, first)] {
                member.session.ping(other.id) { if case .success = $0 { answered += 1 } }
            }
            try place.run(.milliseconds(5))
        }
        try place.run(.seconds(2))
        #expect(first.transport(to: second) == "fast")
        #expect(answered == 3_000)
    }

    @Test func pingsBesideTheLinkAreAnsweredAcrossTheMove() throws {
        var plan = FaultPlan()
        plan.delay = .milliseconds(30)
        let (first, second) = try pairOverSlow(plan: plan, slowPlan: plan)
        place.restoreFast(first, second)
        nonisolated(unsafe) var failures: [NighError] = []  // the loop is virtual: one thread
        for _ in 0..<1_500 {
            first.session.ping(second.id, over: .packets) {
                if case .failure(let error) = $0 { failures.append(error) }
            }
            try place.run(.milliseconds(5))
        }
        try place.run(.seconds(6))
        #expect(first.transport(to: second) == "fast")
        #expect(failures == [])
    }

    @Test func aConversationDoesNotMoveDuringPairing() throws {
        let (first, second) = try pairOverSlow { $0.acceptsPairing = true }
        first.session.pair(second.id) { _ in }
        try place.run(.seconds(1))
        place.restoreFast(first, second)
        try place.run(.seconds(60))
        #expect(first.transport(to: second) == "slow")
        for (member, other) in [(first, second), (second, first)] {
            member.session.peer(other.id).confirmPairing(digitsAgree: true)
        }
        try place.run(.seconds(20))
        #expect(first.transport(to: second) == "fast")
        for (member, other) in [(first, second), (second, first)] {
            #expect(member.probe.peer(other.id)?.trust == .paired)
        }
    }

    enum Asking: CaseIterable { case mover, other, both }

    /// Pairing messages on the link that is left are no longer read.
    @Test(arguments: Asking.allCases) func aPairingStartedDuringAMoveContinuesOnTheBetterTransport(
        asking: Asking
    ) throws {
        var slowPlan = FaultPlan()
        slowPlan.delay = .milliseconds(5)
        let (mover, other) = try pairThatMoves(slowPlan: slowPlan) { $0.acceptsPairing = true }
        if asking != .other { mover.probe.pair(with: other.probe) }
        if asking != .mover { other.probe.pair(with: mover.probe) }
        // The nonce that went over the link that is left counts as a try, so the next one may have to wait for its
        // turn.
        try place.run(SessionMachine.pairingPause.duration + .seconds(1))
        #expect(mover.transport(to: other) == "fast")
        #expect(mover.probe.codes.count == 1 && mover.probe.codes == other.probe.codes)
        for (member, peer) in [(mover, other), (other, mover)] {
            member.session.peer(peer.id).confirmPairing(digitsAgree: true)
        }
        try place.run(.seconds(1))
        for (member, peer) in [(mover, other), (other, mover)] {
            #expect(member.probe.pairedPeers == [peer.id] && member.probe.pairingEnds.isEmpty)
        }
        expectSound(mover, other)
    }

    /// The asked side has left the link of the pairing, and the better link broke before this side heard of it.
    @Test func aPairingStartedDuringAMoveThatFailsEndsAtOnceAndMayBeginAgain() throws {
        let (mover, other) = try pairThatMoves { $0.acceptsPairing = true }
        mover.probe.pair(with: other.probe)
        _ = try place.time { other.transport(to: mover) == "fast" }
        #expect(mover.transport(to: other) == "slow")
        place.cutFast(mover, other)
        try place.run(.seconds(1))
        #expect(mover.probe.pairingEnds == [.superseded] && mover.probe.failure?.cause == .superseded)
        try place.run(.seconds(5))
        #expect(mover.transport(to: other) == "slow")
        mover.probe.pair(with: other.probe)
        try place.run(.seconds(1))
        #expect(mover.probe.codes.last != nil && mover.probe.codes.last == other.probe.codes.last)
        for (member, peer) in [(mover, other), (other, mover)] {
            member.session.peer(peer.id).confirmPairing(digitsAgree: true)
        }
        try place.run(.seconds(1))
        for (member, peer) in [(mover, other), (other, mover)] {
            #expect(member.probe.pairedPeers == [peer.id])
        }
        expectSound(mover, other)
    }

    @Test func aPairingInterruptedByAMoveEndsAndIsReported() throws {
        var slowPlan = FaultPlan()
        slowPlan.delay = .milliseconds(100)
        let (first, second) = try pairOverSlow(slowPlan: slowPlan) { $0.acceptsPairing = true }
        first.probe.pair(with: second.probe)
        try place.run(.seconds(5))
        #expect(first.probe.codes.count == 1 && second.probe.codes.count == 1)
        place.restoreFast(first, second)
        // The refusal is on its way over the slow link when the fast one takes over.
        first.session.peer(second.id).confirmPairing(digitsAgree: false)
        let peer = try #require(first.machine.peers[second.id])
        first.session.driver.inTurn { first.machine.move(peer, now: place.loop.now) }
        try place.run(.seconds(5))
        #expect(first.transport(to: second) == "fast")
        #expect(first.probe.pairingEnds == [.pairingRefused(.digitsDiffer)])
        #expect(second.probe.pairingEnds == [.superseded])
        expectSound(first, second)
    }

    @Test func unsentMessagesOfALeavingSessionArriveAlthoughThePeerMoves() throws {
        var slowPlan = FaultPlan()
        slowPlan.bytesPerSecond = 64 << 10
        let (first, second) = try pairOverSlow(slowPlan: slowPlan) { $0.timings.linger = .seconds(20) }
        try first.session.trySend([UInt8](repeating: 1, count: 512 << 10), to: second.id)
        first.session.disconnect(second.id)
        place.restoreFast(first, second)
        try place.run(.seconds(20))
        #expect(second.reportedTransports(of: first) == ["slow", "fast"])
        #expect(second.probe.messages.map(\.bytes.count) == [512 << 10])
        #expect(first.probe.state(of: second.id) == .available)
    }

    @Test func aRefusedMoveIsNotTriedAgainBeforeTheTimeThatThePeerNamed() throws {
        let (first, second) = try pairOverSlow()
        for (member, other) in [(first, second), (second, first)] {
            let peer = try #require(member.machine.peers[other.id])
            member.session.driver.inTurn {
                member.machine.moveFailed(of: peer, now: place.loop.now, retryAfter: .seconds(600))
            }
        }
        place.restoreFast(first, second)
        try place.run(.milliseconds(599_999))
        #expect(first.transport(to: second) == "slow")
        try place.run(.seconds(2))
        #expect(first.transport(to: second) == "fast")
        for (member, other) in [(first, second), (second, first)] {
            #expect(member.probe.statistics.peers[other.id]?.reconnects == 1)
        }
        expectSound(first, second)
    }

    @Test func aLeavingSessionDoesNotMoveByItself() throws {
        var slowPlan = FaultPlan()
        slowPlan.bytesPerSecond = 64 << 10
        let first = place.join(slowPlan: slowPlan) { $0.timings.linger = .seconds(20) }
        let second = place.join(seesFast: false)
        place.cutFast(first, second)
        try place.connect(first, second)
        try first.session.trySend([UInt8](repeating: 1, count: 512 << 10), to: second.id)
        first.session.disconnect(second.id)
        place.restoreFast(first, second)
        let dials = first.probe.statistics.dials
        try place.run(.seconds(20))
        #expect(first.probe.statistics.dials == dials)
        #expect(second.reportedTransports(of: first) == ["slow"])
        #expect(second.probe.messages.map(\.bytes.count) == [512 << 10])
        #expect(first.probe.state(of: second.id) == .available)
    }
}
