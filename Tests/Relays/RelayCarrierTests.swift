import NighCore
import NighTestKit
import Testing

@testable import NighRelays

@Suite("A carrier") struct RelayCarrierTests {
    /// The words with which an invitation failed.
    private func words(_ error: NighError?) -> String { error.map { "\($0)" } ?? "connected" }

    @Test("whose policy allows nobody refuses with a reason, and counts it")
    func nobody() throws {
        let network = RelayNetwork()
        let (a, b, c) = try network.makeChain(policy: .nobody)
        #expect(!b.relays.carrier.carries(a.id, c.id))
        let failure = try network.invite(c, from: a)
        #expect(words(failure).contains("carries pipes for nobody"), "\(words(failure))")
        #expect(b.relays.carrier.counts.refusals == 1 && b.relays.carrier.counts.pipesEver == 0)
        try network.close()
    }

    @Test("for paired peers carries only if both ends are paired with it")
    func paired() throws {
        for pairedEnds in 0..<4 {
            let network = RelayNetwork()
            let trust = TrustStore.ephemeral()
            let a = network.join(on: [0])
            let b = network.join(on: [0, 1], carryingFor: .paired, trust: trust)
            let c = network.join(on: [1])
            if pairedEnds & 1 != 0 { trust.pair(a.id, name: DisplayName(fitting: "a")) }
            if pairedEnds & 2 != 0 { trust.pair(c.id, name: DisplayName(fitting: "c")) }
            try network.connect(a, b)
            try network.connect(b, c)
            network.tell(a, of: c, through: b)
            let failure = try network.invite(c, from: a)
            #expect((failure == nil) == (pairedEnds == 3))
            #expect(b.relays.carrier.carries(c.id, a.id) == (pairedEnds == 3))
            if let failure { #expect(words(failure).contains("paired with it"), "\(words(failure))") }
            try network.close()
        }
    }

    @Test("counts nobody as paired where nothing is encrypted")
    func pairedWithoutEncryption() throws {
        let network = RelayNetwork()
        let (a, b, c) = try network.makeChain(policy: .paired) { $0.security = .none }
        for id in [a.id, c.id] { b.session.trust.pair(id, name: DisplayName(fitting: "peer")) }
        #expect(!b.relays.carrier.carries(a.id, c.id))
        try network.close()
    }

    @Test("refuses a pipe to a peer that is not connected to it, or takes no pipes")
    func notConnected() throws {
        let network = RelayNetwork()
        let (a, b, c) = try network.makeChain()
        #expect(b.relays.carrier.carries(a.id, c.id))
        b.session.disconnect(c.id)
        try network.run(.seconds(1))
        #expect(!b.relays.carrier.carries(a.id, c.id))
        let failure = try network.invite(c, from: a)
        #expect(words(failure).contains("is not connected to the carrier"), "\(words(failure))")
        let d = network.join(on: [1]) { $0.layers = [] }
        try network.connect(b, d)
        network.tell(a, of: d, through: b)
        try network.run(.seconds(1))
        let other = try network.invite(d, from: a)
        #expect(words(other).contains("takes no relayed pipes"), "\(words(other))")
        try network.close()
    }

    @Test("refuses a peer that has stopped advertising, in that peer's words")
    func notAdvertising() throws {
        let network = RelayNetwork()
        let (a, _, c) = try network.makeChain()
        c.session.stopAdvertising()
        let failure = try network.invite(c, from: a)
        #expect(words(failure).contains("takes no pipes now"), "\(words(failure))")
        try network.close()
    }

    @Test("refuses to be one of two in a row, on both sides of it")
    func twoInARow() throws {
        let network = RelayNetwork()
        let a = network.join(on: [0])
        let b = network.join(on: [0, 1])
        let c = network.join(on: [1, 2])
        let d = network.join(on: [2])
        for (first, second) in [(a, b), (b, c), (c, d)] { try network.connect(first, second) }
        network.tell(b, of: d, through: c)
        #expect(try network.invite(d, from: b) == nil)
        #expect(b.transport(to: d) == "via")
        // B reaches D only through C, so it does not carry for A.
        network.tell(a, of: d, through: b)
        try network.run(.seconds(1))
        #expect(!b.relays.carrier.carries(a.id, d.id) && !b.relays.carrier.carries(d.id, a.id))
        let failure = try network.invite(d, from: a)
        #expect(words(failure).contains("a pipe has one carrier"), "\(words(failure))")
        // And D, for which B is far away, does not ask it.
        network.tell(d, of: a, through: b)
        try network.run(.seconds(1))
        let other = try network.invite(a, from: d)
        #expect(words(other).contains("a pipe has one carrier"), "\(words(other))")
        try network.close()
    }

    @Test("ends the pipes of a peer that it reaches only through another carrier from now on")
    func becomesRelayed() throws {
        let network = RelayNetwork()
        let (a, b, c) = try network.makeRelayedPair()
        let spare = network.join(on: [0])
        try network.connect(spare, a)
        try network.connect(spare, b)
        network.tell(a, of: b, through: spare)
        network.tell(b, of: a, through: spare)
        try network.run(.seconds(1))
        #expect(b.relays.carrier.counts.pipes == 1)
        // From now on A and B reach each other only through the spare one.
        for (member, other) in [(a, b), (b, a)] {
            let place = TransportAddress(scheme: "memory", value: "m\(other.probe.number)-0")
            member.faults[0]?.block(.address(place), dials: .refuse)
            member.faults[0]?.cut(.address(place))
        }
        try network.run(.seconds(20))
        #expect(a.transport(to: b) == "via" && b.transport(to: a) == "via")
        #expect(b.relays.carrier.counts.pipes == 0)
        #expect(a.transport(to: c) == nil)
        try network.close()
    }

    @Test("refuses a pipe to itself, and one from a peer to itself")
    func loops() throws {
        let network = RelayNetwork()
        let (a, b, _) = try network.makeChain()
        for (name, reason) in [
            ("to:\(b.id)", "is the wanted peer itself"), ("to:\(a.id)", "needs no carrier"),
            ("from:\(a.id)", "needs no carrier"), ("from:\(b.id)", "needs no carrier"),
            ("to:nobody", "relay stream"), ("", "relay stream"),
        ] {
            nonisolated(unsafe) var stream: ByteStream?  // the loop is virtual: one thread
            a.session.openStream(named: name, to: b.id, for: .relay) { stream = try? $0.get() }
            try network.run(.milliseconds(500))
            guard case .failed(let error)? = stream?.poll(), case .streamCancelled(let words) = error.cause
            else {
                Issue.record("\(name) was not refused")
                continue
            }
            #expect(words.contains(reason), "\(name): \(words)")
        }
        for (value, reason) in [
            ("\(b.id)/\(a.id)", "\(NighError.Cause.selfDial)"), ("\(b.id)/\(b.id)", "to itself"),
            ("\(b.id)", "CARRIER/PEER"),
        ] {
            nonisolated(unsafe) var failure: NighError?  // the loop is virtual: one thread
            a.session.invite(at: TransportAddress(scheme: "via", value: value)) {
                if case .failure(let error) = $0 { failure = error }
            }
            try network.run(.seconds(1))
            #expect(words(failure).contains(reason), "\(value): \(words(failure))")
        }
        try network.close()
    }

    @Test("carries as many pipes as its limits allow, in all and for one peer")
    func numbers() throws {
        for (adjust, reason) in [
            ({ (limits: inout RelayLimits) in limits.pipes = 2 }, "carries 2 pipes, its limit"),
            ({ (limits: inout RelayLimits) in limits.pipesPerPeer = 2 }, "2 pipes for the same peer"),
        ] {
            var limits = RelayLimits()
            adjust(&limits)
            let network = RelayNetwork()
            let (a, b, c) = try network.makeRelayedPair(limits: limits)
            let others = (0..<2).map { _ in network.join(on: [1]) }
            for other in others {
                try network.connect(b, other)
                network.tell(a, of: other, through: b)
            }
            try network.run(.seconds(1))
            #expect(try network.invite(others[0], from: a) == nil)
            let failure = try network.invite(others[1], from: a)
            #expect(words(failure).contains(reason), "\(words(failure))")
            // Once one of them has ended, there is room again.
            a.session.disconnect(c.id)
            try network.run(.seconds(1))
            #expect(b.relays.carrier.counts.pipes == 1)
            #expect(try network.invite(others[1], from: a) == nil)
            try network.close()
        }
    }

    /// Asks a carrier for a pipe as a peer does that wants to hold a place and nothing else.
    private func ask(
        _ carrier: RelayNetwork.Member, for wanted: RelayNetwork.Member, from asking: RelayNetwork.Member
    ) throws -> ByteStream {
        nonisolated(unsafe) var stream: ByteStream?  // the loop is virtual: one thread
        asking.session.openStream(named: "to:\(wanted.id)", to: carrier.id, for: .relay) {
            stream = try? $0.get()
        }
        return try #require(stream)
    }

    private func reason(_ stream: ByteStream) -> String? {
        while true {
            switch stream.poll() {
            case .bytes: break
            case .failed(let error): return "\(error.cause)"
            case .nothing, .end: return nil
            }
        }
    }

    @Test("frees the place of a pipe that the wanted peer does not take within 10 s")
    func unanswered() throws {
        let network = RelayNetwork()
        let (a, b, c) = try network.makeChain()
        // It takes streams for relays, and never says anything on them.
        nonisolated(unsafe) var kept: [ByteStream] = []  // the loop is virtual: one thread
        let silent = network.join(on: [1]) { $0.layers = [TestLayer(streams: .relay) { kept.append($0) }] }
        try network.connect(b, silent)
        let streams = try (0..<4).map { _ in try ask(b, for: silent, from: a) }
        try network.run(.seconds(8))
        #expect(kept.count == 4 && b.relays.carrier.counts.pipes == 4)
        let another = try ask(b, for: c, from: a)
        try network.run(.seconds(1))
        #expect(reason(another)?.contains("4 pipes for the same peer") == true)
        try network.run(.seconds(2))
        #expect(b.relays.carrier.counts.pipes == 0)
        for stream in streams {
            #expect(reason(stream)?.contains("has not taken the pipe within 10 s") == true)
        }
        #expect(try network.invite(c, from: a) == nil)
        try network.run(.seconds(60))
        #expect(b.relays.carrier.counts.pipes == 1)
        try network.close()
    }

    @Test("gives a place of a peer that has at least two more to one that asks, and no other place")
    func fairness() throws {
        var limits = RelayLimits()
        (limits.pipes, limits.pipesPerPeer) = (4, 4)
        let network = RelayNetwork()
        let (a, b, c) = try network.makeChain(limits: limits)
        let others = try (0..<3).map { _ in
            let other = network.join(on: [0])
            try network.connect(other, b)
            return other
        }
        let held = try (0..<4).map { _ in try ask(b, for: c, from: a) }
        try network.run(.seconds(1))
        // Four and none, then three and one, then two, one and one.
        let streams = try others.map { other in
            let stream = try ask(b, for: c, from: other)
            try network.run(.seconds(1))
            #expect(b.relays.carrier.counts.pipes == 4)
            return stream
        }
        #expect(held.compactMap(reason).count == 2 + 1)
        #expect(held.compactMap(reason).allSatisfy { $0.contains("needs the place for another peer") })
        #expect(streams.allSatisfy { reason($0) == nil })
        // All have one now.
        let last = try ask(b, for: c, from: others[0])
        try network.run(.seconds(1))
        #expect(reason(last)?.contains("carries 4 pipes, its limit") == true)
        try network.close()
    }

    @Test("gives a place of a stranger to a paired peer that asks, and not the other way round")
    func pairedFirst() throws {
        var limits = RelayLimits()
        (limits.pipes, limits.pipesPerPeer) = (1, 1)
        let network = RelayNetwork()
        let (a, b, c) = try network.makeChain(limits: limits)
        let paired = network.join(on: [0])
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
        #expect(reason(stream) == nil && b.relays.carrier.counts.pipes == 1)
        try network.close()
    }

    @Test("ends a pipe at its limit of bytes or time, names it, and leaves the two alone for a while")
    func exhaustion() throws {
        for (adjust, reason) in [
            ({ (limits: inout RelayLimits) in limits.bytes = 200_000 }, "limit of 200000 bytes"),
            ({ (limits: inout RelayLimits) in limits.time = .seconds(20) }, "limit of 20 s"),
        ] {
            var limits = RelayLimits()
            limits.pause = .seconds(120)
            adjust(&limits)
            let network = RelayNetwork()
            let (a, b, c) = try network.makeRelayedPair(limits: limits)
            for number in 0..<30 { try a.send(number, size: 10_000, to: c) }
            try network.run(.seconds(21))
            #expect(b.relays.carrier.counts.pipes == 0)
            let causes = a.probe.events.compactMap { event -> String? in
                guard let change = event.stateChange, change.peer.id == c.id else { return nil }
                return change.cause.map { "\($0)" }
            }
            #expect(causes.contains { $0.contains(reason) }, "\(causes)")
            try network.run(.seconds(60))
            #expect(!a.isConnected(to: c))
            #expect(b.relays.carrier.counts.refusals > 0 && b.relays.carrier.counts.pipesEver == 1)
            let failure = try network.invite(c, from: a)
            #expect(words(failure).contains("as much as it does between these peers"), "\(words(failure))")
            try network.run(.seconds(60))
            #expect(try network.invite(c, from: a) == nil)
            try network.close()
        }
    }

    @Test("that closes ends its pipes first, and closes at once")
    func stopping() throws {
        let network = RelayNetwork()
        let (a, b, c) = try network.makeRelayedPair()
        nonisolated(unsafe) var isClosed = false  // the loop is virtual: one thread
        b.session.close { isClosed = true }
        try network.run(.milliseconds(500))
        #expect(isClosed)
        #expect(a.probe.lastCause(of: b.id)?.cause == .peerLeft)
        #expect(a.probe.state(of: c.id) == .reconnecting && c.probe.state(of: a.id) == .reconnecting)
        try network.close()
    }
}
