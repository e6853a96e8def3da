import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests that a conversation outlives its links, and for how long.
@Suite struct ResumingTests {
    private let network = SimulatedNetwork()

    @Test func `Messages of both sides survive broken links`() throws {
        let (puma, lynx) = try network.connectedPair()
        for number in 0..<100 {
            try puma.session.trySend(Array("p\(number)".utf8), to: lynx.id)
            try lynx.session.trySend(Array("l\(number)".utf8), to: puma.id)
            if number % 10 == 5 {
                puma.faults.cut()
                try network.run(for: .milliseconds(number % 20 == 5 ? 0 : 3))
            }
        }
        try network.run(for: .seconds(30))
        #expect(lynx.texts == (0..<100).map { "p\($0)" })
        #expect(puma.texts == (0..<100).map { "l\($0)" })
        #expect(puma.states(of: lynx.id).contains(.reconnecting))
        #expect(puma.state(of: lynx.id) == .connected && lynx.state(of: puma.id) == .connected)
        #expect(try puma.counts(of: lynx).reconnects > 0)
    }

    @Test func `Without a route both sides are disconnected after the grace`() throws {
        let (puma, lynx) = try network.connectedPair()
        for member in [puma, lynx] {
            member.faults.block()
            member.faults.cut()
        }
        try network.run(for: .seconds(9))
        #expect(puma.state(of: lynx.id) == .reconnecting)
        try puma.session.trySend([1, 2, 3], to: lynx.id)
        try network.run(for: .seconds(3))
        #expect(puma.endings == [.linkLost] && lynx.endings == [.linkLost])
        #expect(puma.lastCause(of: lynx.id)?.cause == .linkLost)
        #expect(throws: NighError.self) { try puma.session.trySend([4], to: lynx.id) }
    }

    @Test func `Links that break at once are not dialled without pause`() throws {
        let (puma, lynx) = try network.connectedPair(plan: try FaultPlan(parsing: "cut-after-bytes=3000"))
        try puma.session.trySend([UInt8](repeating: 1, count: 10_000), to: lynx.id)
        try network.run(for: .seconds(20))
        let breaks = puma.states(of: lynx.id).count { $0 == .reconnecting }
        #expect(breaks > 3 && breaks < 30)
        for member in [puma, lynx] { member.faults.plan = .none }
        try network.run(for: .seconds(4))
        #expect(lynx.messages.map(\.bytes.count) == [10_000])
    }

    // MARK: Silence

    /// Returns the reports to a member about the silence of another, in order.
    private func reports(of member: SessionProbe, about other: SessionProbe) -> [String] {
        member.events.compactMap { event in
            switch event {
            case .peerUnresponsive(let peer) where peer.id == other.id: "unresponsive"
            case .peerResponsive(let peer) where peer.id == other.id: "responsive"
            default: nil
            }
        }
    }

    @Test func `A silent peer is suspected and then lost in bounded time`() throws {
        let (puma, lynx) = try network.connectedPair()
        try network.run(for: .seconds(60))
        #expect(puma.state(of: lynx.id) == .connected && reports(of: puma, about: lynx) == [])
        for member in [puma, lynx] { member.faults.stall() }
        try network.run(for: .seconds(11))
        #expect(puma.state(of: lynx.id) == .connected && reports(of: puma, about: lynx) == ["unresponsive"])
        try network.run(for: .seconds(5))
        #expect(puma.state(of: lynx.id) == .reconnecting)
    }

    enum Return: CaseIterable { case onItsLink, onAnotherLink, onAnotherLinkAfterItsLossHere }

    @Test(arguments: Return.allCases)
    func `An unresponsive peer that answers is reported as responsive`(_ way: Return) throws {
        let (puma, lynx) = try network.connectedPair()
        for member in [puma, lynx] {
            member.faults.stall(.pipe(try #require(member.faults.pipes.first).number))
        }
        try network.run(for: .seconds(11))
        for member in [puma, lynx] where way == .onItsLink { member.faults.release() }
        if way != .onItsLink { lynx.faults.cut() }
        if way == .onAnotherLinkAfterItsLossHere { puma.faults.cut() }
        try network.run(for: .seconds(2))
        #expect(puma.states(of: lynx.id).contains(.reconnecting) == (way == .onAnotherLinkAfterItsLossHere))
        #expect(puma.state(of: lynx.id) == .connected)
        #expect(reports(of: puma, about: lynx) == ["unresponsive", "responsive"])
    }

    // MARK: Restarts

    @Test func `A restarted peer that invites is one peer and ends the old conversation at once`() throws {
        let (puma, lynx) = try network.connectedPair()
        lynx.faults.block()
        puma.faults.block(.address(lynx.address))
        let reborn = network.join("Lynx again", number: 2)
        try network.run(for: .seconds(1))
        try network.invite(puma, from: reborn)
        #expect(reborn.outcomes == [.success(puma.id)])
        #expect(puma.state(of: lynx.id) == .connected && puma.endings == [.restarted])
        #expect(puma.machine.peers.count == 1)
        try reborn.session.trySend(Array("new life".utf8), to: puma.id)
        try network.run(for: .seconds(1))
        #expect(puma.texts == ["new life"])
    }

    @Test func `A restarted peer at the same address is not mistaken for the old one`() throws {
        let (puma, lynx) = try slowPair()
        lynx.session.crash()
        try network.run(for: .milliseconds(50))
        let again = network.join("second", number: 2, at: lynx.address.value)
        try network.run(for: .seconds(30))
        #expect(puma.states(of: lynx.id).contains(.disconnected))
        #expect(puma.state(of: again.id) == .available, "found again")
        puma.invite(again)
        try network.run(for: .seconds(2))
        #expect(puma.state(of: again.id) == .connected)
    }

    // MARK: Time

    /// Two connected sessions with a delay of 100 ms in each direction.
    private func slowPair() throws -> (first: SessionProbe, second: SessionProbe) {
        // Only one of the two has a plan, because what passes two delays would take twice as long.
        let first = network.join("first", plan: try FaultPlan(parsing: "delay=100ms"))
        let second = network.join("second")
        try network.run(for: .seconds(1))
        try network.invite(second, from: first)
        try network.run(for: .seconds(1))
        try #require(first.state(of: second.id) == .connected)
        return (first, second)
    }

    @Test func `A conversation resumes two round trips after the dial`() throws {
        let (first, second) = try slowPair()
        first.faults.cut()
        let moved = try network.time { first.state(of: second.id) != .connected }
        #expect(moved <= 1)
        let elapsed = try network.time { first.state(of: second.id) == .connected }
        // The TLS hello there and its answer back; then proof, hello and request there, and the acceptance back.
        #expect((395...420).contains(elapsed), "\(elapsed) ms")
    }

    @Test func `The next handshake is shortened by a ticket each time`() throws {
        let (first, second) = try slowPair()
        #expect(first.link(to: second.id)?.machine.wasResumed == false)
        for _ in 0..<3 {
            // The ticket follows the first messages.
            try network.run(for: .seconds(1))
            first.faults.cut()
            try network.run(for: .seconds(3))
            #expect(first.link(to: second.id)?.machine.wasResumed == true)
            #expect(second.link(to: first.id)?.machine.wasResumed == true)
        }
    }
}
