import NighCore
import NighTestKit
import Testing

@testable import NighTCP

struct PresenceCheckTests {
    private let loop = VirtualEventLoop()
    private let puma = Identity.ephemeral().peerID

    /// `@unchecked Sendable`: confined to the virtual loop's thread.
    private final class House: @unchecked Sendable {
        /// Nil while a probe cannot be tried.
        var opens: Bool? = true
        var hasOpenPipe = false
        var answersAfter = Duration.milliseconds(1)
        var probes: [Moment] = []
        var reports: [Bool] = []
    }

    private func check(_ house: House) -> PresenceCheck {
        PresenceCheck(
            on: loop, hasOpenPipe: { _ in house.hasOpenPipe },
            probe: { [loop] _, report in
                house.probes.append(loop.now)
                let report = Unchecked(report)
                loop.schedule(at: loop.now + Moment.Span(house.answersAfter)) { report.value(house.opens) }
            }, report: { _, accepted in house.reports.append(accepted) })
    }

    /// `@unchecked Sendable`: confined to the virtual loop's thread.
    private struct Unchecked<Value>: @unchecked Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    @Test func aPeerThatStopsOpeningIsGoneInBoundedTime() throws {
        let house = House()
        house.answersAfter = .seconds(4)
        let presence = check(house)
        presence.add(puma)
        try loop.run(for: .seconds(60))
        #expect(house.reports.allSatisfy { $0 })
        #expect(house.probes.count == 3)
        house.opens = false
        house.reports = []
        let start = loop.now
        #expect(try loop.run(until: { !house.reports.isEmpty }, within: .seconds(60)))
        #expect(house.reports == [false])
        #expect(loop.now - start <= .seconds(30))
    }

    @Test func oneFailedProbeDoesNotLoseAPeer() throws {
        let house = House()
        house.opens = false
        let presence = check(house)
        presence.add(puma)
        #expect(try loop.run(until: { house.probes.count == 1 }, within: .seconds(20)))
        try loop.run(for: .milliseconds(10))
        house.opens = true
        try loop.run(for: .seconds(5))
        #expect(house.reports == [true])
    }

    /// When this side has no descriptor left, that says nothing about the peer.
    @Test func aProbeThatCannotBeTriedLosesNobody() throws {
        let house = House()
        house.opens = nil
        let presence = check(house)
        presence.add(puma)
        try loop.run(for: .seconds(100))
        #expect(house.reports.isEmpty)
        #expect((4...7).contains(house.probes.count))
        house.opens = false
        #expect(try loop.run(until: { house.reports == [false] }, within: .seconds(20)))
    }

    @Test func aDoubtfulPeerIsProbedAtOnce() throws {
        let house = House()
        house.opens = false
        let presence = check(house)
        presence.add(puma)
        presence.probeSoon(puma)
        #expect(try loop.run(until: { house.reports == [false] }, within: .seconds(3)))
        house.opens = true
        #expect(try loop.run(until: { house.reports == [false, true] }, within: .seconds(20)))
    }

    /// The check is frequent for as long as a conversation waits for a new link, and rare afterwards.
    @Test func aPeerThatReturnsIsSoonReported() throws {
        let house = House()
        house.opens = false
        let presence = check(house)
        presence.add(puma)
        presence.probeSoon(puma)
        try loop.run(for: .seconds(7))
        house.opens = true
        #expect(try loop.run(until: { house.reports.last == true }, within: .seconds(3)))
        house.opens = false
        presence.probeSoon(puma)
        try loop.run(for: .seconds(30))
        let before = house.probes.count
        try loop.run(for: .seconds(150))
        #expect((9...11).contains(house.probes.count - before))
    }

    @Test func aPeerWithAnOpenPipeIsNotProbed() throws {
        let house = House()
        house.hasOpenPipe = true
        let presence = check(house)
        presence.add(puma)
        presence.probeSoon(puma)
        try loop.run(for: .seconds(120))
        #expect(house.probes.isEmpty)
    }

    /// A few silent peers are more than can be probed as often as they should be.
    @Test func eachOfManySilentPeersIsProbedInTurn() throws {
        let peers = (1...100 as ClosedRange<UInt64>).map { Identity.ephemeral(seed: $0).peerID }
        let probed = Probed()
        let presence = PresenceCheck(
            on: loop, hasOpenPipe: { _ in false },
            probe: { [loop] peer, report in
                probed.peers.append(peer)
                let report = Unchecked(report)
                loop.schedule(at: loop.now + Moment.Span(PresenceCheck.probeTimeout)) { report.value(false) }
            }, report: { _, _ in })
        for peer in peers { presence.add(peer) }
        try loop.run(for: .seconds(60))
        #expect(Set(probed.peers.prefix(peers.count)) == Set(peers))
    }

    /// `@unchecked Sendable`: confined to the virtual loop's thread.
    private final class Probed: @unchecked Sendable {
        var peers: [PeerID] = []
    }

    @Test func forgottenPeersAreNotReported() throws {
        let house = House()
        house.answersAfter = .seconds(1)
        house.opens = false
        let presence = check(house)
        presence.add(puma)
        presence.probeSoon(puma)
        #expect(try loop.run(until: { house.probes.count == 1 }, within: .seconds(3)))
        presence.remove(puma)
        try loop.run(for: .seconds(60))
        #expect(house.reports.isEmpty)
        #expect(house.probes.count == 1)
    }
}
