import NighCore
import NighTestKit
import Testing

@testable import NighTCP

struct PresenceCheckTests {
    /// The check of a peer's presence, and what its probes meet, in virtual time.
    ///
    /// `@unchecked Sendable`: confined to the virtual loop's thread.
    private final class Ground: @unchecked Sendable {
        let loop = VirtualEventLoop()
        let puma = Identity.ephemeral().peerID
        /// Whether a probe opens a pipe; nil while it cannot be tried.
        var opens: Bool?
        private let answersAfter: Duration
        private let hasOpenPipe: Bool
        private(set) var probes: [PeerID] = []
        private(set) var reports: [Bool] = []

        private(set) lazy var presence = PresenceCheck(
            on: loop, hasOpenPipe: { [unowned self] _ in hasOpenPipe },
            probe: { [unowned self] peer, reply in
                probes.append(peer)
                nonisolated(unsafe) let reply = reply  // Called on the same thread.
                loop.schedule(at: loop.now + Moment.Span(answersAfter)) { reply(self.opens) }
            }, report: { [unowned self] _, accepted in reports.append(accepted) })

        init(
            opens: Bool?, after answersAfter: Duration = .milliseconds(1), hasOpenPipe: Bool = false,
            probesSoon: Bool = false
        ) {
            self.opens = opens
            self.answersAfter = answersAfter
            self.hasOpenPipe = hasOpenPipe
            presence.add(puma)
            if probesSoon { presence.probeSoon(puma) }
        }

        func run(_ seconds: Int) throws { try loop.run(for: .seconds(seconds)) }

        /// Runs until the reports are these. Returns whether that takes at most so many seconds.
        func reports(_ reports: [Bool], within seconds: Int) throws -> Bool {
            try loop.run(until: { self.reports == reports }, within: .seconds(seconds))
        }
    }

    @Test func `A peer that stops opening pipes is lost within 30 s`() throws {
        let ground = Ground(opens: true, after: .seconds(4))
        try ground.run(60)
        #expect(ground.reports.allSatisfy { $0 } && ground.probes.count == 3)
        ground.opens = false
        #expect(try ground.reports(ground.reports + [false], within: 30))
    }

    @Test func `One failed probe does not lose a peer`() throws {
        let ground = Ground(opens: false)
        #expect(try ground.loop.run(until: { ground.probes.count == 1 }, within: .seconds(20)))
        try ground.loop.run(for: .milliseconds(10))
        ground.opens = true
        try ground.run(5)
        #expect(ground.reports == [true])
    }

    /// When this side has no descriptor left, that says nothing about the peer.
    @Test func `A probe that cannot be tried loses no peer`() throws {
        let ground = Ground(opens: nil)
        try ground.run(100)
        #expect(ground.reports.isEmpty && (4...7).contains(ground.probes.count))
        ground.opens = false
        #expect(try ground.reports([false], within: 20))
    }

    /// The check is frequent for as long as a conversation waits for a new link, and rare afterwards.
    @Test func `A doubtful peer is probed at once, and its return is soon reported`() throws {
        let ground = Ground(opens: false, probesSoon: true)
        #expect(try ground.reports([false], within: 3))
        try ground.run(4)
        ground.opens = true
        #expect(try ground.loop.run(until: { ground.reports.last == true }, within: .seconds(3)))
        ground.opens = false
        ground.presence.probeSoon(ground.puma)
        try ground.run(30)
        let before = ground.probes.count
        try ground.run(150)
        #expect((9...11).contains(ground.probes.count - before))
    }

    @Test func `A peer with an open pipe is not probed`() throws {
        let ground = Ground(opens: true, hasOpenPipe: true, probesSoon: true)
        try ground.run(120)
        #expect(ground.probes.isEmpty)
    }

    /// A few silent peers are more than can be probed as often as they should be.
    @Test func `Each of many silent peers is probed in turn`() throws {
        let ground = Ground(opens: false, after: PresenceCheck.probeTimeout)
        let peers = (1...99 as ClosedRange<UInt64>).map { Identity.ephemeral(seed: $0).peerID }
        for peer in peers { ground.presence.add(peer) }
        try ground.run(60)
        #expect(Set(ground.probes.prefix(100)) == Set(peers + [ground.puma]))
    }

    @Test func `A removed peer is not reported`() throws {
        let ground = Ground(opens: false, after: .seconds(1), probesSoon: true)
        #expect(try ground.loop.run(until: { ground.probes.count == 1 }, within: .seconds(3)))
        ground.presence.remove(ground.puma)
        try ground.run(60)
        #expect(ground.reports.isEmpty && ground.probes.count == 1)
    }
}
