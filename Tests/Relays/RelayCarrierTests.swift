import NighCore
import NighTestKit
import Testing

@testable import NighRelays

@Suite("A carrier") struct RelayCarrierTests {
    private let network = RelayNetwork()

    /// Invites a member, and returns the words with which that fails.
    private func refusal(
        _ other: RelayNetwork.Member, from member: RelayNetwork.Member
    ) throws -> String { try network.invite(other, from: member).map { "\($0)" } ?? "connected" }

    @Test func `whose policy allows nobody refuses with a reason, and counts it`() throws {
        let (a, b, c) = try network.makeChain(policy: .nobody)
        #expect(!b.carries(a.id, c.id))
        #expect(try refusal(c, from: a).contains("carries pipes for nobody"))
        #expect(b.counts.refusals == 1 && b.counts.pipesEver == 0)
    }

    @Test(arguments: [false, true], [false, true])
    func `for paired peers carries only if both ends are paired with it`(
        firstIsPaired: Bool, lastIsPaired: Bool
    ) throws {
        let trust = TrustStore.ephemeral()
        for (number, isPaired) in [(1, firstIsPaired), (3, lastIsPaired)] as [(UInt64, Bool)] where isPaired {
            trust.pair(Identity.ephemeral(seed: number).peerID, name: DisplayName(fitting: "\(number)"))
        }
        let (a, b, c) = try network.makeChain(policy: .paired, trust: trust)
        let isCarried = firstIsPaired && lastIsPaired
        #expect(b.carries(c.id, a.id) == isCarried)
        #expect(try refusal(c, from: a).contains(isCarried ? "connected" : "paired with it"))
    }

    @Test func `counts nobody as paired where nothing is encrypted`() throws {
        let (a, b, c) = try network.makeChain(policy: .paired) { $0.security = .none }
        for id in [a.id, c.id] { b.session.trust.pair(id, name: DisplayName(fitting: "peer")) }
        #expect(!b.carries(a.id, c.id))
    }

    @Test func `refuses a pipe to a peer that is not connected to it, or takes no pipes`() throws {
        let (a, b, c) = try network.makeChain()
        #expect(b.carries(a.id, c.id))
        b.session.disconnect(c.id)
        try network.run(.seconds(1))
        #expect(!b.carries(a.id, c.id))
        #expect(try refusal(c, from: a).contains("is not connected to the carrier"))
        let d = network.join(on: 1) { $0.layers = [] }
        try network.connect(b, d)
        network.tell(a, of: d, through: b)
        try network.run(.seconds(1))
        #expect(try refusal(d, from: a).contains("takes no relayed pipes"))
    }

    @Test func `refuses a peer that has stopped advertising, in that peer's words`() throws {
        let (a, _, c) = try network.makeChain()
        c.session.stopAdvertising()
        #expect(try refusal(c, from: a).contains("takes no pipes now"))
    }

    @Test func `refuses to be one of two in a row, on both sides of it`() throws {
        let (a, b) = (network.join(on: 0), network.join(on: 0, 1))
        let (c, d) = (network.join(on: 1, 2), network.join(on: 2))
        try network.connect(a, b, c, d)
        network.tell(b, of: d, through: c)
        #expect(try network.invite(d, from: b) == nil)
        #expect(b.transport(to: d) == "via")
        // B reaches D only through C, so it does not carry for A.
        network.tell(a, of: d, through: b)
        try network.run(.seconds(1))
        #expect(!b.carries(a.id, d.id) && !b.carries(d.id, a.id))
        #expect(try refusal(d, from: a).contains("a pipe has one carrier"))
        // And D, for which B is far away, does not ask it.
        network.tell(d, of: a, through: b)
        try network.run(.seconds(1))
        #expect(try refusal(a, from: d).contains("a pipe has one carrier"))
    }

    @Test func `ends the pipes of a peer that it reaches only through another carrier from now on`() throws {
        let (a, b, c) = try network.makeRelayedPair()
        let spare = network.join(on: 0)
        try network.connect(a, spare, b)
        network.tell(a, of: b, through: spare)
        network.tell(b, of: a, through: spare)
        try network.run(.seconds(1))
        #expect(b.counts.pipes == 1)
        // From now on A and B reach each other only through the spare one.
        for (member, other) in [(a, b), (b, a)] {
            let place = TransportAddress(
                scheme: "memory", value: "m\(other.probe.number)-\(other.probe.number)")
            member.faults[0]?.block(.address(place), dials: .refuse)
            member.faults[0]?.cut(.address(place))
        }
        try network.run(.seconds(20))
        #expect(a.transport(to: b) == "via" && b.transport(to: a) == "via")
        #expect(b.counts.pipes == 0)
        #expect(a.transport(to: c) == nil)
    }

    @Test func `refuses a pipe to itself, and one from a peer to itself`() throws {
        let (a, b, _) = try network.makeChain()
        for (name, reason) in [
            ("to:\(b.id)", "is the wanted peer itself"), ("to:\(a.id)", "needs no carrier"),
            ("from:\(a.id)", "needs no carrier"), ("from:\(b.id)", "needs no carrier"),
            ("to:nobody", "relay stream"), ("", "relay stream"),
        ] {
            let stream = try a.openStream(name, to: b)
            try network.run(.milliseconds(500))
            #expect(self.reason(stream)?.contains(reason) == true, "\(name)")
        }
        for (value, reason) in [
            ("\(b.id)/\(a.id)", "\(NighError.Cause.selfDial)"), ("\(b.id)/\(b.id)", "to itself"),
            ("\(b.id)", "CARRIER/PEER"),
        ] {
            a.session.invite(at: TransportAddress(scheme: "via", value: value)) { [probe = a.probe] in
                probe.outcomes.append($0)
            }
            try network.run(.seconds(1))
            #expect(a.probe.failure.map { "\($0)".contains(reason) } == true, "\(value)")
        }
    }

    private static func limits(_ adjust: (inout RelayLimits) -> Void) -> RelayLimits {
        var limits = RelayLimits()
        adjust(&limits)
        return limits
    }

    @Test(
        arguments: [
            (limits { $0.pipes = 2 }, "carries 2 pipes, its limit"),
            (limits { $0.pipesPerPeer = 2 }, "2 pipes for the same peer"),
        ])
    func `carries as many pipes as its limits allow, in all and for one peer`(
        limits: RelayLimits, reason: String
    ) throws {
        let (a, b, c) = try network.makeRelayedPair(limits: limits)
        let others = (0..<2).map { _ in network.join(on: 1) }
        for other in others {
            try network.connect(b, other)
            network.tell(a, of: other, through: b)
        }
        try network.run(.seconds(1))
        #expect(try network.invite(others[0], from: a) == nil)
        #expect(try refusal(others[1], from: a).contains(reason))
        // Once one of them has ended, there is room again.
        a.session.disconnect(c.id)
        try network.run(.seconds(1))
        #expect(b.counts.pipes == 1)
        #expect(try network.invite(others[1], from: a) == nil)
    }

    /// Asks a carrier for a pipe as a peer does that wants to hold a place and nothing else.
    private func ask(
        _ carrier: RelayNetwork.Member, for wanted: RelayNetwork.Member, from asking: RelayNetwork.Member
    ) throws -> ByteStream { try asking.openStream("to:\(wanted.id)", to: carrier) }

    private func reason(_ stream: ByteStream) -> String? {
        while true {
            switch stream.poll() {
            case .bytes: break
            case .failed(let error): return "\(error.cause)"
            case .nothing, .end: return nil
            }
        }
    }

    @Test func `frees the place of a pipe that the wanted peer does not take within 10 s`() throws {
        let (a, b, c) = try network.makeChain()
        // It takes streams for relays, and never says anything on them.
        nonisolated(unsafe) var kept: [ByteStream] = []  // the loop is virtual: one thread
        let silent = network.join(on: 1) { $0.layers = [TestLayer(streams: .relay) { kept.append($0) }] }
        try network.connect(b, silent)
        let streams = try (0..<4).map { _ in try ask(b, for: silent, from: a) }
        try network.run(.seconds(8))
        #expect(kept.count == 4 && b.counts.pipes == 4)
        let another = try ask(b, for: c, from: a)
        try network.run(.seconds(1))
        #expect(reason(another)?.contains("4 pipes for the same peer") == true)
        try network.run(.seconds(2))
        #expect(b.counts.pipes == 0)
        for stream in streams {
            #expect(reason(stream)?.contains("has not taken the pipe within 10 s") == true)
        }
        #expect(try network.invite(c, from: a) == nil)
        try network.run(.seconds(60))
        #expect(b.counts.pipes == 1)
    }

    @Test func `gives a place of a peer that has at least two more to one that asks, and no other`() throws {
        let (a, b, c) = try network.makeChain(limits: Self.limits { ($0.pipes, $0.pipesPerPeer) = (4, 4) })
        let others = try (0..<3).map { _ in
            let other = network.join(on: 0)
            try network.connect(other, b)
            return other
        }
        let held = try (0..<4).map { _ in try ask(b, for: c, from: a) }
        try network.run(.seconds(1))
        // Four and none, then three and one, then two, one and one.
        let streams = try others.map { other in
            let stream = try ask(b, for: c, from: other)
            try network.run(.seconds(1))
            #expect(b.counts.pipes == 4)
            return stream
        }
        #expect(held.compactMap(reason).count == 2 + 1)
        #expect(held.compactMap(reason).allSatisfy { $0.contains("needs the place for another peer") })
        #expect(streams.allSatisfy { reason($0) == nil })
        // All have one now.
        let last = try ask(b, for: c, from: others[0])
        try network.run(.seconds(1))
        #expect(reason(last)?.contains("carries 4 pipes, its limit") == true)
    }

    @Test func `gives a place of a stranger to a paired peer that asks, and not the other way`() throws {
        let (a, b, c) = try network.makeChain(limits: Self.limits { ($0.pipes, $0.pipesPerPeer) = (1, 1) })
        let paired = network.join(on: 0)
        try network.connect(paired, b)
        b.session.trust.pair(paired.id, name: DisplayName(fitting: "paired"))
        let stranger = try ask(b, for: c, from: a)
        try network.run(.seconds(1))
        let stream = try ask(b, for: c, from: paired)
        try network.run(.seconds(1))
        #expect(reason(stranger)?.contains("needs the place for another peer") == true)
        let again = try ask(b, for: c, from: a)
        try network.run(.seconds(1))
        #expect(reason(again)?.contains("carries 1 pipes, its limit") == true)
        #expect(reason(stream) == nil && b.counts.pipes == 1)
    }

    @Test(
        arguments: [
            (limits { ($0.bytes, $0.pause) = (200_000, .seconds(120)) }, "limit of 200000 bytes"),
            (limits { ($0.time, $0.pause) = (.seconds(20), .seconds(120)) }, "limit of 20 s"),
        ])
    func `ends a pipe at its limit of bytes or time, names it, and leaves the two alone for a while`(
        limits: RelayLimits, reason: String
    ) throws {
        let (a, b, c) = try network.makeRelayedPair(limits: limits)
        for number in 0..<30 { try a.send(number, size: 10_000, to: c) }
        try network.run(.seconds(21))
        #expect(b.counts.pipes == 0)
        let causes = a.probe.events.compactMap { event -> String? in
            guard let change = event.stateChange, change.peer.id == c.id else { return nil }
            return change.cause.map { "\($0)" }
        }
        #expect(causes.contains { $0.contains(reason) }, "\(causes)")
        try network.run(.seconds(60))
        #expect(!a.isConnected(to: c) && b.counts.refusals > 0 && b.counts.pipesEver == 1)
        #expect(try refusal(c, from: a).contains("as much as it does between these peers"))
        try network.run(.seconds(60))
        #expect(try network.invite(c, from: a) == nil)
    }

    @Test func `that closes ends its pipes first, and closes at once`() throws {
        let (a, b, c) = try network.makeRelayedPair()
        nonisolated(unsafe) var isClosed = false  // the loop is virtual: one thread
        b.session.close { isClosed = true }
        try network.run(.milliseconds(500))
        #expect(isClosed)
        #expect(a.probe.lastCause(of: b.id)?.cause == .peerLeft)
        #expect(a.probe.state(of: c.id) == .reconnecting && c.probe.state(of: a.id) == .reconnecting)
    }
}
