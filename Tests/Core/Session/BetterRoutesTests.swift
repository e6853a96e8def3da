import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests that a conversation continues over the remaining route, and returns to a better one once that works again.
///
/// All moves of a conversation are in this one file, although it is long, because they share the two wires and their
/// faults.
@Suite struct BetterRoutesTests {
    private let network = SimulatedNetwork.withTwoWires()

    /// Two sessions that see each other on both wires. The plans are the first one's.
    private func join(
        fastPlan: String = "", slowPlan: String = "", on network: SimulatedNetwork? = nil,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (first: SessionProbe, second: SessionProbe) {
        let network = network ?? self.network
        let (first, second) = (network.join(adjust: adjust), network.join(adjust: adjust))
        first.fast.plan = try FaultPlan(parsing: fastPlan)
        first.slow.plan = try FaultPlan(parsing: slowPlan)
        return (first, second)
    }

    /// Two sessions that are connected over the slow transport, because the fast one is down.
    private func pairOverSlow(
        fastPlan: String = "", slowPlan: String = "", on network: SimulatedNetwork? = nil,
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (first: SessionProbe, second: SessionProbe) {
        let (first, second) = try join(fastPlan: fastPlan, slowPlan: slowPlan, on: network, adjust: adjust)
        cutFast(first, second)
        try (network ?? self.network).connect(first, second)
        #expect(first.transport(to: second) == "slow")
        return (first, second)
    }

    /// Two sessions that are connected over the fast transport.
    private func pairOverFast(plan: String = "") throws -> (first: SessionProbe, second: SessionProbe) {
        let (first, second) = try join(fastPlan: plan, slowPlan: plan)
        try network.connect(first, second)
        #expect(first.transport(to: second) == "fast")
        return (first, second)
    }

    private func both(
        _ first: SessionProbe, _ second: SessionProbe
    ) -> [(member: SessionProbe, other: SessionProbe)] { [(first, second), (second, first)] }

    /// Breaks the fast transport: cuts what is open on it, and makes dials fail as `dials` says.
    private func cutFast(_ members: SessionProbe..., dials: FaultControl.BlockedDials = .refuse) {
        for member in members {
            member.fast.block(dials: dials)
            member.fast.cut()
        }
    }

    private func restoreFast(_ members: SessionProbe...) { for member in members { member.fast.unblock() } }

    private func dials(_ members: SessionProbe...) -> Int {
        members.reduce(0) { $0 + $1.statistics.dials }
    }

    private func expectOneLink(_ members: SessionProbe..., at location: SourceLocation = #_sourceLocation) {
        for member in members { #expect(member.machine.links.count == 1, sourceLocation: location) }
    }

    /// Sends numbered messages in both directions, one pair every millisecond.
    private func talk(
        _ first: SessionProbe, _ second: SessionProbe, _ numbers: Range<Int>, on loop: VirtualEventLoop
    ) throws {
        for number in numbers {
            try first.session.trySend(Array("\(number)".utf8), to: second.id)
            try second.session.trySend(Array("\(number)".utf8), to: first.id)
            try loop.run(for: .milliseconds(1))
        }
    }

    // MARK: Away and back

    @Test func `A conversation continues on the other transport and returns`() throws {
        let (first, second) = try pairOverFast(plan: "delay=5ms")
        try talk(first, second, 0..<500, on: network.loop)
        cutFast(first, second)
        try talk(first, second, 500..<1_500, on: network.loop)
        #expect(first.transport(to: second) == "slow")
        restoreFast(first, second)
        try talk(first, second, 1_500..<15_000, on: network.loop)
        try network.run(for: .seconds(20))
        for (member, other) in both(first, second) {
            #expect(member.transport(to: other) == "fast")
            #expect(member.reportedTransports(of: other.id) == ["fast", "slow", "fast"])
            #expect(member.texts == (0..<15_000).map { "\($0)" })
            let states = member.states(of: other.id)
            #expect(states == [.available, .connecting, .connected, .reconnecting, .connected])
        }
        expectOneLink(first, second)
    }

    /// The peer is lost at once if its link breaks, and otherwise once it has been silent for long enough.
    @Test(arguments: [(true, 2_300), (false, 17_500)])
    func `The other transport is used in time if dials get no answer`(isCut: Bool, limit: Int) throws {
        let (first, second) = try pairOverFast()
        for member in [first, second] { member.fast.block(dials: .timeOut) }
        if isCut { for member in [first, second] { member.fast.cut() } }
        try first.session.trySend(Array("unheard".utf8), to: second.id)
        let elapsed = try network.time { first.transport(to: second) == "slow" }
        #expect(elapsed <= limit)
        try network.run(for: .seconds(5))
        #expect(second.texts == ["unheard"])
        expectOneLink(first, second)
    }

    @Test func `A route that appears during an unanswered dial is used`() throws {
        let (first, second) = try pairOverFast()
        for member in [first, second] { member.machine.routesLost(transport: 0) }
        cutFast(first, second, dials: .timeOut)
        try network.run(for: .seconds(3))
        #expect(first.state(of: second.id) == .reconnecting)
        for member in [first, second] { member.session.startBrowsing() }
        let elapsed = try network.time { first.transport(to: second) == "slow" }
        #expect(elapsed <= 2_300)
    }

    @Test func `Simultaneous moves end with one link`() throws {
        for delay in 0..<40 {
            let network = SimulatedNetwork.withTwoWires()
            let plan = "delay=\(delay)ms"
            let (first, second) = try pairOverSlow(fastPlan: plan, slowPlan: plan, on: network)
            second.slow.plan = try FaultPlan(parsing: plan)
            restoreFast(first, second)
            for (member, other) in both(first, second) {
                let peer = try #require(member.machine.peers[other.id])
                member.session.driver.inTurn {
                    member.machine.moveConversation(of: peer, now: network.loop.now)
                }
            }
            try talk(first, second, 0..<300, on: network.loop)
            try network.run(for: .seconds(3))
            for (member, other) in both(first, second) {
                #expect(member.reportedTransports(of: other.id) == ["slow", "fast"])
                #expect(member.texts == (0..<300).map { "\($0)" })
                #expect(member.states(of: other.id) == [.available, .connecting, .connected])
            }
            expectOneLink(first, second)
        }
    }

    @Test(arguments: [false, true])
    func `One side may alone see the better route`(greaterSees: Bool) throws {
        let isFirstGreater = Identity.ephemeral(seed: 1).peerID > Identity.ephemeral(seed: 2).peerID
        let members = [isFirstGreater == greaterSees, isFirstGreater != greaterSees].map {
            $0 ? network.join() : network.join(through: Self.seeingOnlySlow)
        }
        let (first, second) = (members[0], members[1])
        cutFast(first, second)
        try network.connect(first, second)
        #expect(first.transport(to: second) == "slow")
        restoreFast(first, second)
        try network.run(for: .seconds(20))
        #expect(first.transport(to: second) == "fast" && second.transport(to: first) == "fast")
        expectOneLink(first, second)
    }

    private static func seeingOnlySlow(_ transport: any Transport) -> any Transport {
        if transport.scheme == "fast" { (transport as? RelabelledTransport)?.finds = false }
        return transport
    }

    @Test func `A conversation does not move between transports of equal priority`() throws {
        let network = SimulatedNetwork.withTwoWires(priorities: (200, 200))
        let (first, second) = try pairOverSlow(on: network)
        restoreFast(first, second)
        let before = dials(first, second)
        try network.run(for: .seconds(300))
        #expect(dials(first, second) == before && first.transport(to: second) == "slow")
    }

    // MARK: Patience

    @Test func `A better route that refuses is tried with back-off`() throws {
        let (first, second) = try pairOverSlow()
        let before = dials(first, second)
        try network.run(for: .seconds(60))
        let soon = dials(first, second) - before
        #expect((3...12).contains(soon), "\(soon) dials in the first minute")
        try network.run(for: .seconds(600))
        let middle = dials(first, second)
        try network.run(for: .seconds(600))
        let late = dials(first, second) - middle
        #expect((4...16).contains(late), "\(late) dials in ten minutes")
        for (member, other) in both(first, second) {
            #expect(member.reportedTransports(of: other.id) == ["slow"])
            #expect(member.states(of: other.id) == [.available, .connecting, .connected])
        }
        restoreFast(first, second)
        try network.run(for: .seconds(400))
        #expect(first.transport(to: second) == "fast")
        expectOneLink(first, second)
    }

    @Test func `A better route that keeps breaking is used with back-off`() throws {
        let (first, second) = try pairOverSlow()
        var waits: [Int] = []
        for _ in 0..<4 {
            restoreFast(first, second)
            waits.append(try network.time { first.transport(to: second) == "fast" })
            try network.run(for: .seconds(5))
            cutFast(first, second)
            try network.run(for: .seconds(1))
            #expect(first.transport(to: second) == "slow")
        }
        for (wait, next) in zip(waits, waits.dropFirst()) { #expect(next > wait, "\(waits)") }
        #expect(waits[3] > 15_000, "\(waits)")
    }

    @Test func `A route that keeps appearing and disappearing is not dialled`() throws {
        let (first, second) = try pairOverSlow()
        func loseFast(_ member: SessionProbe, _ other: SessionProbe) throws {
            member.session.driver.transports[1].stopBrowsing()
            let peer = try #require(member.machine.peers[other.id])
            member.session.driver.inTurn {
                member.machine.removeRoutes(of: peer) { $0.address.scheme == "fast" }
            }
        }
        for (member, other) in both(first, second) { try loseFast(member, other) }
        restoreFast(first, second)
        let before = dials(first, second)
        for _ in 0..<20 {
            for (member, other) in both(first, second) {
                member.session.driver.transports[1].browse("test")
                try network.run(for: .seconds(1))
                try loseFast(member, other)
            }
        }
        #expect(dials(first, second) == before)
    }

    @Test func `A refused move is not tried again before the time that the peer named`() throws {
        let (first, second) = try pairOverSlow()
        for (member, other) in both(first, second) {
            let peer = try #require(member.machine.peers[other.id])
            member.session.driver.inTurn {
                member.machine.moveFailed(of: peer, now: network.loop.now, retryAfter: .seconds(600))
            }
        }
        restoreFast(first, second)
        try network.run(for: .milliseconds(599_999))
        #expect(first.transport(to: second) == "slow")
        try network.run(for: .seconds(2))
        #expect(first.transport(to: second) == "fast")
        for (member, other) in both(first, second) {
            #expect(try member.counts(of: other).reconnects == 1)
        }
        expectOneLink(first, second)
    }

    // MARK: The move

    /// Two members on the slow transport, one of which has just asked to move to the fast one.
    private func pairThatMoves(
        slowPlan: String = "", adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (mover: SessionProbe, other: SessionProbe) {
        let (first, second) = try pairOverSlow(fastPlan: "delay=20ms", slowPlan: slowPlan, adjust: adjust)
        restoreFast(first, second)
        let elapsed = try network.time {
            both(first, second).contains { $0.machine.peers[$1.id]?.attempt?.requestSent ?? false }
        }
        #expect(elapsed < 5_000)
        return first.machine.peers[second.id]?.attempt != nil ? (first, second) : (second, first)
    }

    @Test func `A missing answer delays the conversation for at most two seconds`() throws {
        let (mover, other) = try pairThatMoves()
        // The request is on its way, and gets no answer.
        for member in [mover, other] { member.fast.block() }
        try other.session.trySend(Array("waits".utf8), to: mover.id)
        try mover.session.trySend(Array("goes".utf8), to: other.id)
        try network.run(for: .milliseconds(1_900))
        #expect(mover.texts == [] && other.texts == ["goes"])
        try network.run(for: .milliseconds(200))
        #expect(mover.texts == ["waits"])
        #expect(mover.states(of: other.id) == [.available, .connecting, .connected])
    }

    /// Messages that arrived on the old link while it was held are delivered as soon as the move has failed, not with
    /// the next bytes.
    @Test func `Messages received during a failed move are delivered at its end`() throws {
        let (first, second) = try pairOverSlow()
        let driver = first.session.driver
        let peer = try #require(first.machine.peers[second.id])
        let link = try #require(peer.link)
        driver.inTurn {
            link.isHeld = true
            first.machine.output(.hold(link))
        }
        try second.session.trySend(Array("meanwhile".utf8), to: first.id)
        try network.loop.run(for: .milliseconds(100))
        #expect(first.texts == [])
        driver.inTurn { first.machine.release(linkOf: peer) }
        try network.run(for: .milliseconds(10))
        #expect(first.texts == ["meanwhile"])
        expectOneLink(first, second)
    }

    /// Packets travel beside the link, so they need not wait for what becomes of it.
    @Test func `Packets arrive while the link is held for a move`() throws {
        let (first, second) = try pairOverSlow()
        try second.session.trySend([0], to: first.id, .unreliable)
        try network.run(for: .seconds(1))
        let peer = try #require(first.machine.peers[second.id])
        let link = try #require(peer.link)
        first.session.driver.inTurn { first.machine.hold(link) }
        // Longer than a path stays open without an answer.
        for number in 1...30 as ClosedRange<UInt8> {
            try second.session.trySend([number], to: first.id, .unreliable)
            try network.loop.run(for: .milliseconds(50))
            #expect(first.messages.map(\.bytes) == (0...number).map { [$0] })
        }
        #expect(link.isHeld && first.machine.deadline(of: link) == link.datagrams?.deadline)
        #expect(second.link(to: first.id)?.datagrams?.isOpen == true)
        first.session.driver.inTurn { first.machine.release(linkOf: peer) }
        try network.run(for: .zero)
        expectOneLink(first, second)
    }

    @Test func `A conversation returns to the previous transport at once if the better fails`() throws {
        let (first, second) = try pairOverSlow()
        for _ in 0..<3 {
            restoreFast(first, second)
            let moved = try network.time {
                first.transport(to: second) == "fast" && second.transport(to: first) == "fast"
            }
            #expect(moved < .max)
            cutFast(first, second, dials: .timeOut)
            try first.session.trySend([1], to: second.id)
            let elapsed = try network.time { first.transport(to: second) == "slow" }
            #expect(elapsed <= 5)
        }
        try network.run(for: .milliseconds(100))
        #expect(second.messages.count == 3)
        expectOneLink(first, second)
    }

    @Test func `A large message that is under way arrives once and whole`() throws {
        // Pieces keep arriving on the slow link while the request to move is in progress.
        let (first, second) = try pairOverSlow(fastPlan: "delay=20ms", slowPlan: "rate=1m") {
            $0.limits.sendBuffer = 64 << 20
        }
        let large = [UInt8]((0..<16 << 20).lazy.map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 12) })
        restoreFast(first, second)
        for (member, other) in both(first, second) {
            for bytes in [Array("before".utf8), large, Array("after".utf8)] {
                try member.session.trySend(bytes, to: other.id)
            }
        }
        try network.run(for: .seconds(12))
        for (member, other) in both(first, second) {
            #expect(member.reportedTransports(of: other.id) == ["slow", "fast"])
            #expect(member.messages.map(\.bytes.count) == [6, 16 << 20, 5])
            #expect(member.messages[1].bytes == large)
            #expect(member.states(of: other.id) == [.available, .connecting, .connected])
        }
    }

    @Test(arguments: [PingPath.link, .packets])
    func `Pings are answered across the move`(path: PingPath) throws {
        let (first, second) = try pairOverSlow(fastPlan: "delay=30ms", slowPlan: "delay=30ms")
        restoreFast(first, second)
        var answers: [Answer<Duration>] = []
        for _ in 0..<1_500 {
            for (member, other) in both(first, second) {
                answers.append(Answer())
                member.session.ping(other.id, over: path, completion: answers.last!.take)
            }
            try network.loop.run(for: .milliseconds(5))
        }
        try network.run(for: .seconds(6))
        #expect(first.transport(to: second) == "fast")
        #expect(answers.count(where: \.isSuccess) == answers.count)
    }

    // MARK: Pairing

    @Test func `A conversation does not move during pairing`() throws {
        let (first, second) = try pairOverSlow { $0.acceptsPairing = true }
        try network.pair(first, with: second)
        restoreFast(first, second)
        try network.run(for: .seconds(60))
        #expect(first.transport(to: second) == "slow")
        for (member, other) in both(first, second) { member.confirmPairing(with: other) }
        try network.run(for: .seconds(20))
        #expect(first.transport(to: second) == "fast")
        for (member, other) in both(first, second) { #expect(member.peer(other.id)?.trust == .paired) }
    }

    enum Asking: CaseIterable { case mover, other, both }

    /// Pairing messages on the link that is left are no longer read.
    @Test(arguments: Asking.allCases)
    func `A pairing started during a move continues on the better transport`(asking: Asking) throws {
        let (mover, other) = try pairThatMoves(slowPlan: "delay=5ms") { $0.acceptsPairing = true }
        if asking != .other { mover.pair(with: other) }
        if asking != .mover { other.pair(with: mover) }
        // The nonce that went over the link that is left counts as a try, so the next one may have to wait for its
        // turn.
        try network.run(for: SessionMachine.pairingPause.duration + .seconds(1))
        #expect(mover.transport(to: other) == "fast")
        #expect(mover.codes.count == 1 && mover.codes == other.codes)
        for (member, peer) in both(mover, other) { member.confirmPairing(with: peer) }
        try network.run(for: .seconds(1))
        for (member, peer) in both(mover, other) {
            #expect(member.pairedPeers == [peer.id] && member.pairingEnds.isEmpty)
        }
        expectOneLink(mover, other)
    }

    /// The asked side has left the link of the pairing, and the better link broke before this side heard of it.
    @Test func `A pairing started during a move that fails ends at once and may begin again`() throws {
        let (mover, other) = try pairThatMoves { $0.acceptsPairing = true }
        mover.pair(with: other)
        _ = try network.time { other.transport(to: mover) == "fast" }
        #expect(mover.transport(to: other) == "slow")
        cutFast(mover, other)
        try network.run(for: .seconds(1))
        #expect(mover.pairingEnds == [.superseded] && mover.failure?.cause == .superseded)
        try network.run(for: .seconds(5))
        #expect(mover.transport(to: other) == "slow")
        try network.pair(mover, with: other)
        #expect(mover.codes.last != nil && mover.codes.last == other.codes.last)
        for (member, peer) in both(mover, other) { member.confirmPairing(with: peer) }
        try network.run(for: .seconds(1))
        for (member, peer) in both(mover, other) { #expect(member.pairedPeers == [peer.id]) }
        expectOneLink(mover, other)
    }

    @Test func `A pairing interrupted by a move ends and is reported`() throws {
        let (first, second) = try pairOverSlow(slowPlan: "delay=100ms") { $0.acceptsPairing = true }
        first.pair(with: second)
        try network.run(for: .seconds(5))
        #expect(first.codes.count == 1 && second.codes.count == 1)
        restoreFast(first, second)
        // The refusal is on its way over the slow link when the fast one takes over.
        first.confirmPairing(with: second, digitsAgree: false)
        let peer = try #require(first.machine.peers[second.id])
        first.session.driver.inTurn { first.machine.moveConversation(of: peer, now: network.loop.now) }
        try network.run(for: .seconds(5))
        #expect(first.transport(to: second) == "fast")
        #expect(first.pairingEnds == [.pairingRefused(.digitsDiffer)])
        #expect(second.pairingEnds == [.superseded])
        expectOneLink(first, second)
    }

    // MARK: Leaving

    /// A session that leaves does not move by itself; its peer may.
    @Test(arguments: [true, false])
    func `Unsent messages of a leaving session arrive, whether or not the peer moves`(peerMoves: Bool) throws
    {
        let first = network.join { $0.timings.linger = .seconds(20) }
        let second = network.join(through: peerMoves ? { $0 } : Self.seeingOnlySlow)
        first.slow.plan = try FaultPlan(parsing: "rate=64k")
        cutFast(first, second)
        try network.connect(first, second)
        try first.session.trySend([UInt8](repeating: 1, count: 512 << 10), to: second.id)
        first.session.disconnect(second.id)
        restoreFast(first, second)
        let before = dials(first)
        try network.run(for: .seconds(20))
        if !peerMoves { #expect(dials(first) == before) }
        #expect(second.reportedTransports(of: first.id) == (peerMoves ? ["slow", "fast"] : ["slow"]))
        #expect(second.messages.map(\.bytes.count) == [512 << 10])
        #expect(first.state(of: second.id) == .available)
    }
}
