import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests which events an observer of a session's links receives.
@Suite struct LinkObserverTests {
    /// Records all events.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    private final class Witness: SessionLayer, LinkObserver, @unchecked Sendable {
        private(set) var events: [(link: UInt64, event: LinkEvent, moment: Moment)] = []

        func link(_ link: UInt64, _ event: LinkEvent, at moment: Moment) {
            events.append((link, event, moment))
        }

        var names: [String] {
            var names: [String] = []
            for (_, event, _) in events {
                let name = "\(event)".prefix { $0 != "(" }
                if names.last != String(name) { names.append(String(name)) }
            }
            return names
        }

        var sent: [UInt8] {
            events.flatMap { if case .sent(let bytes) = $0.event { bytes.bytes } else { [UInt8]() } }
        }

        var received: [UInt8] {
            events.flatMap { if case .received(let bytes) = $0.event { bytes.bytes } else { [UInt8]() } }
        }

        var packetsSent: [[UInt8]] {
            events.compactMap { if case .packetSent(let packet) = $0.event { packet.bytes } else { nil } }
        }

        var packetsReceived: [[UInt8]] {
            events.compactMap { if case .packetReceived(let packet) = $0.event { packet.bytes } else { nil } }
        }

        var ending: LinkEnding? {
            for case .ended(let ending) in events.map(\.event) { return ending }
            return nil
        }
    }

    private static func types(of stream: [UInt8]) throws -> [FrameType] {
        var types: [FrameType] = []
        var decoder = FrameDecoder(maximumPayload: 16_384)
        decoder.feed(ByteSlice(stream.dropFirst(Preface.byteCount)))
        while let frame = try decoder.next() { types.append(try #require(FrameType(rawValue: frame.type))) }
        return types
    }

    @Test(
        "Both ends' observers see the same two streams, from preface to close",
        arguments: [SessionSecurity.encrypted, .none])
    func streams(_ security: SessionSecurity) throws {
        let place = Neighbourhood()
        let witnesses = (Witness(), Witness())
        var isFirst = true
        let (puma, lynx) = try place.pair {
            $0.security = security
            $0.layers.append(isFirst ? witnesses.0 : witnesses.1)
            isFirst = false
        }
        try puma.session.trySend(Array("hello".utf8), to: lynx.id)
        try lynx.session.trySend(Array(repeating: 7, count: 50_000), to: puma.id)
        try place.run(.seconds(1))
        puma.session.disconnect(lynx.id)
        try place.run(.seconds(1))

        #expect(witnesses.0.sent == witnesses.1.received)
        #expect(witnesses.1.sent == witnesses.0.received)
        #expect(
            witnesses.0.sent.starts(with: Preface(security: security == .none ? .plaintext : .tls13).bytes))
        let said = try Self.types(of: witnesses.0.sent)
        #expect(said.first == .hello && said.last == .close)
        #expect(said.contains(.invite) && said.contains(.message))
        let answered = try Self.types(of: witnesses.1.sent)
        #expect(answered.contains(.accept) && answered.contains(.begin) && answered.contains(.piece))
        #expect(witnesses.0.sent.contains(Array("hello".utf8)))
    }

    @Test(
        "The start, authentication, hello and end of a link are each reported once, in order with its bytes"
    )
    func order() throws {
        let place = Neighbourhood()
        let witness = Witness()
        let puma = place.join("puma") { $0.layers.append(witness) }
        let lynx = place.join("lynx")
        try place.run(.seconds(1))
        puma.invite(lynx)
        try place.run(.seconds(1))
        lynx.session.disconnect(puma.id)
        try place.run(.seconds(1))

        #expect(witness.names.prefix(3) == ["opened", "sent", "received"])
        #expect(witness.names.last == "ended")
        for name in ["opened", "secured", "greeted", "ended"] {
            #expect(witness.events.filter { "\($0.event)".hasPrefix(name) }.count == 1, "\(name)")
        }
        let events = witness.events.map(\.event)
        guard case .opened(let opening) = events[0] else { return #expect(Bool(false), "no beginning") }
        #expect(opening.isDialled && opening.scheme == "memory")
        #expect(opening.remoteAddress == lynx.address)
        for case .secured(let peer, let wasResumed) in events { #expect(peer == lynx.id && !wasResumed) }
        for case .greeted(let greeting) in events {
            #expect(
                greeting.peer == lynx.id && greeting.name.description == "lynx" && greeting.service == "test")
        }
        #expect(witness.ending?.code == LinkClose.Code.left.rawValue && witness.ending?.isByPeer == true)
        #expect(zip(witness.events, witness.events.dropFirst()).allSatisfy { $0.moment <= $1.moment })
    }

    @Test(
        "Both ends' observers see the same packets beside a link, in plaintext and without tags",
        arguments: [SessionSecurity.encrypted, .none])
    func packets(_ security: SessionSecurity) throws {
        let place = Neighbourhood()
        let witnesses = [Witness(), Witness()]
        var plan = FaultPlan()
        plan.jitter = .milliseconds(5)
        plan.loss = .init(1, outOf: 20)
        plan.duplicate = .init(1, outOf: 10)
        var count = 0
        let (puma, lynx) = try place.pair(plan: plan) {
            $0.security = security
            $0.datagrams = true
            $0.layers.append(witnesses[count])
            count += 1
        }
        try puma.session.trySend([0], to: lynx.id, .unreliable)
        try place.run(.seconds(2))
        for number in 0..<200 as Range<UInt8> {
            try puma.session.trySend([number, 1, 2], to: lynx.id, .unordered)
            try lynx.session.trySend(Array(repeating: number, count: 3_000), to: puma.id, .newest(key: 4))
            try place.run(.milliseconds(20))
        }
        try place.run(.seconds(1))

        for (own, other) in [(0, 1), (1, 0)] {
            let (sent, received) = (witnesses[own].packetsSent, witnesses[other].packetsReceived)
            // Each packet has its own number, so none is there twice.
            #expect(Set(sent).count == sent.count && Set(received).count == received.count)
            #expect(Set(received).isSubset(of: sent))
            #expect(received.count > 200 && received.count < sent.count)
            let (member, peer) = own == 0 ? (puma, lynx) : (lynx, puma)
            #expect(member.statistics.peers[peer.id]?.datagrams?.packetsSent == sent.count)
            #expect(peer.statistics.peers[member.id]?.datagrams?.packetsReceived == received.count)
        }
        for packets in [witnesses[0].packetsSent, witnesses[1].packetsReceived] {
            let messages = packets.map { $0.dropFirst(16) }.filter { $0.first == 3 }
            #expect(messages.contains([3, 0, 150, 1, 2]) || messages.contains([3, 0, 151, 1, 2]))
        }
        #expect(witnesses[1].packetsSent.contains { $0.count == 8 + 16 + 1_000 && $0[17] == 2 + 4 })
    }

    @Test("A link that its session refuses ends with the reason, at both ends")
    func refusal() throws {
        let place = Neighbourhood()
        let witnesses = (Witness(), Witness())
        let puma = place.join("puma") {
            $0.security = .paired
            $0.layers.append(witnesses.0)
        }
        let lynx = place.join("lynx") { $0.layers.append(witnesses.1) }
        try place.run(.seconds(1))
        lynx.invite(puma)
        try place.run(.seconds(1))
        let code = LinkClose.Code.notPaired.rawValue
        let words = "\(NighError.Cause.notPaired)"
        #expect(witnesses.0.ending == LinkEnding(reason: words, code: code, isByPeer: false))
        #expect(witnesses.1.ending == LinkEnding(reason: words, code: code, isByPeer: true))
    }

    @Test("A link that breaks, and one that its session closes, end with their causes")
    func ends() throws {
        let place = Neighbourhood()
        let witness = Witness()
        let puma = place.join("puma") { $0.layers.append(witness) }
        let lynx = place.join("lynx")
        try place.run(.seconds(1))
        puma.invite(lynx)
        try place.run(.seconds(1))
        puma.faults.cut()
        try place.run(.seconds(2))
        #expect(witness.ending == LinkEnding(reason: "the link was lost", code: nil, isByPeer: false))
        puma.session.close {}
        try place.run(.seconds(5))
        let ends = witness.events.filter { "\($0.event)".hasPrefix("ended") }
        #expect(ends.count == Set(witness.events.map(\.link)).count)
        guard case .ended(let last)? = ends.last?.event else { return #expect(Bool(false), "no end") }
        #expect(
            last.code == LinkClose.Code.left.rawValue || last.code == LinkClose.Code.sessionClosed.rawValue)
        #expect(!last.isByPeer)
    }
}
