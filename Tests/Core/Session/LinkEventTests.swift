import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests which events an observer of a session's links receives.
@Suite struct LinkObserverTests {
    private let network = SimulatedNetwork()

    private static func types(of stream: [UInt8]) throws -> [FrameType] {
        var types: [FrameType] = []
        var decoder = FrameDecoder(maximumPayload: 16_384)
        decoder.feed(ByteSlice(stream.dropFirst(Preface.byteCount)))
        while let frame = try decoder.next() { types.append(try #require(FrameType(rawValue: frame.type))) }
        return types
    }

    /// Two connected sessions with a witness each.
    private func pair(
        plan: FaultPlan = .none, adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> ((SessionProbe, LinkWitness), (SessionProbe, LinkWitness)) {
        var witnesses: [LinkWitness] = []
        let (puma, lynx) = try network.connectedPair(plan: plan) {
            witnesses.append(LinkWitness())
            $0.layers.append(witnesses.last!)
            adjust(&$0)
        }
        return ((puma, witnesses[0]), (lynx, witnesses[1]))
    }

    @Test(arguments: [SessionSecurity.encrypted, .none])
    func `Both ends' observers see the same two streams, from preface to close`(
        _ security: SessionSecurity
    ) throws {
        let ((puma, pumas), (lynx, lynxs)) = try pair { $0.security = security }
        try puma.session.trySend(Array("hello".utf8), to: lynx.id)
        try lynx.session.trySend(Array(repeating: 7, count: 50_000), to: puma.id)
        try network.run(for: .seconds(1))
        try network.disconnect(puma, from: lynx)
        #expect(pumas.sent == lynxs.received && lynxs.sent == pumas.received)
        let preface = Preface(security: security == .none ? .plaintext : .tls13)
        #expect(pumas.sent.starts(with: preface.bytes) && pumas.sent.contains(Array("hello".utf8)))
        let said = try Self.types(of: pumas.sent)
        #expect(said.first == .hello && said.last == .close)
        #expect(said.contains(.invite) && said.contains(.message))
        let answered = try Self.types(of: lynxs.sent)
        #expect(answered.contains(.accept) && answered.contains(.begin) && answered.contains(.piece))
    }

    @Test func `The steps of a link are each reported once, in order with its bytes`() throws {
        let ((puma, witness), (lynx, _)) = try pair()
        try network.disconnect(lynx, from: puma)
        #expect(witness.names.prefix(3) == ["opened", "sent", "received"] && witness.names.last == "ended")
        for name in ["opened", "secured", "greeted", "ended"] {
            #expect(witness.names.count { $0 == name } == 1, "\(name)")
        }
        let events = witness.events.map(\.event)
        guard case .opened(let opening) = events[0] else { return #expect(Bool(false), "no beginning") }
        #expect(opening.isDialled && opening.scheme == "memory" && opening.remoteAddress == lynx.address)
        for case .secured(let peer, let wasResumed) in events { #expect(peer == lynx.id && !wasResumed) }
        for case .greeted(let greeting) in events {
            #expect(greeting.peer == lynx.id && greeting.name == lynx.name && greeting.service == "test")
        }
        let ending = witness.endings.first
        #expect(ending?.code == LinkClose.Code.left.rawValue && ending?.isByPeer == true)
        #expect(zip(witness.events, witness.events.dropFirst()).allSatisfy { $0.moment <= $1.moment })
    }

    @Test(arguments: [SessionSecurity.encrypted, .none])
    func `Both ends' observers see the same packets beside a link, in plaintext and without tags`(
        _ security: SessionSecurity
    ) throws {
        let plan = try FaultPlan(parsing: "jitter=5ms,loss=1/20,duplicate=1/10")
        let ends = try pair(plan: plan) {
            $0.security = security
            $0.datagrams = true
        }
        let ((puma, pumas), (lynx, lynxs)) = ends
        try puma.session.trySend([0], to: lynx.id, .unreliable)
        try network.run(for: .seconds(2))
        for number in 0..<200 as Range<UInt8> {
            try puma.session.trySend([number, 1, 2], to: lynx.id, .unordered)
            try lynx.session.trySend(Array(repeating: number, count: 3_000), to: puma.id, .newest(key: 4))
            try network.run(for: .milliseconds(20))
        }
        try network.run(for: .seconds(1))

        for ((member, own), (peer, other)) in [ends, (ends.1, ends.0)] {
            let (sent, received) = (own.packetsSent, other.packetsReceived)
            // Each packet has its own number, so none is there twice.
            #expect(Set(sent).count == sent.count && Set(received).count == received.count)
            #expect(Set(received).isSubset(of: sent))
            #expect(received.count > 200 && received.count < sent.count)
            #expect(try member.counts(of: peer).datagrams?.packetsSent == sent.count)
            #expect(try peer.counts(of: member).datagrams?.packetsReceived == received.count)
        }
        for packets in [pumas.packetsSent, lynxs.packetsReceived] {
            let messages = packets.map { $0.dropFirst(16) }.filter { $0.first == 3 }
            #expect(messages.contains([3, 0, 150, 1, 2]) || messages.contains([3, 0, 151, 1, 2]))
        }
        #expect(lynxs.packetsSent.contains { $0.count == 8 + 16 + 1_000 && $0[17] == 2 + 4 })
    }

    @Test func `A link that its session refuses ends with the reason, at both ends`() throws {
        let witnesses = (LinkWitness(), LinkWitness())
        let puma = network.join("Puma", layers: [witnesses.0]) { $0.security = .paired }
        let lynx = network.join("Lynx", layers: [witnesses.1])
        try network.run(for: .seconds(1))
        try network.invite(puma, from: lynx)
        for (witness, isByPeer) in [(witnesses.0, false), (witnesses.1, true)] {
            let ending = LinkEnding(
                reason: "\(NighError.Cause.notPaired)", code: LinkClose.Code.notPaired.rawValue,
                isByPeer: isByPeer)
            #expect(witness.endings == [ending])
        }
    }

    @Test func `A link that breaks, and one that its session closes, end with their causes`() throws {
        let ((puma, witness), _) = try pair()
        puma.faults.cut()
        try network.run(for: .seconds(2))
        #expect(witness.endings == [LinkEnding(reason: "the link was lost", code: nil, isByPeer: false)])
        puma.session.close {}
        try network.run(for: .seconds(5))
        #expect(witness.endings.count == Set(witness.events.map(\.link)).count)
        let last = try #require(witness.endings.last)
        #expect([LinkClose.Code.left.rawValue, LinkClose.Code.sessionClosed.rawValue].contains(last.code))
        #expect(!last.isByPeer)
    }
}

extension LinkWitness {
    /// The names of the events, without immediate repetitions.
    fileprivate var names: [String] {
        events.reduce(into: []) { names, event in
            let name = String("\(event.event)".prefix { $0 != "(" })
            if names.last != name { names.append(name) }
        }
    }

    fileprivate var received: [UInt8] {
        events.flatMap { if case .received(let bytes) = $0.event { bytes.bytes } else { [UInt8]() } }
    }

    fileprivate var packetsSent: [[UInt8]] {
        events.compactMap { if case .packetSent(let packet) = $0.event { packet.bytes } else { nil } }
    }

    fileprivate var packetsReceived: [[UInt8]] {
        events.compactMap { if case .packetReceived(let packet) = $0.event { packet.bytes } else { nil } }
    }
}

/// Tests what ends with a link: the link itself, the request on it, or the conversation.
@Suite struct LinkEndingTests {
    @Test func `A link without a request ends after 20 s, with a reason on both sides`() throws {
        let witness = LinkWitness()
        let peer = try ScriptedPeer { $0.layers.append(witness) }
        try peer.open()
        try peer.exchangeHellos()
        for second in 1..<20 {
            try peer.run(.seconds(1))
            try peer.send(.ping, [0, 0, 0, 0, 0, 0, 0, UInt8(second)])
        }
        try peer.run(.milliseconds(999))
        #expect(try peer.takeFrames().contains { $0.type == FrameType.close.rawValue } == false)
        #expect(witness.endings.isEmpty)
        try peer.run(.milliseconds(1))
        #expect(try peer.takeFrames() == [.close(13)])
        #expect(witness.endings == [LinkEnding(reason: "no answer in time", code: 13, isByPeer: false)])
    }

    @Test func `A peer's violation is recorded in the same words that the peer receives`() throws {
        let witness = LinkWitness()
        let peer = try ScriptedPeer.connected { $0.layers.append(witness) }
        try peer.send(.accept, peer.conversation + [UInt8](repeating: 0, count: 8) + ScriptedPeer.standing)
        let words = "an answer without a request"
        #expect(
            try peer.takeFrames() == [.init(.close, [0, 1, UInt8(words.utf8.count)] + Array(words.utf8))])
        #expect(
            witness.endings == [
                LinkEnding(reason: "protocol violation: \(words)", code: 1, isByPeer: false)
            ])
    }

    /// Close codes by what they end: known ones, and later ones, whose range says it.
    private static let link: [UInt16] =
        [2, 3, 4, 6, 10, 12, 13, 15, 17, 18, 19, 0xFF, 0x0100, 0x01FF, 0x0400, 0xFFFE]
    private static let request: [UInt16] = [5, 7, 8, 9, 14, 0x0200, 0x0277, 0x02FF]
    private static let conversation: [UInt16] = [0, 1, 11, 16, 0x0300, 0x03AB, 0x03FF]

    @Test(arguments: link)
    func `A conversation looks for another link if only the link has ended`(code: UInt16) throws {
        let peer = try ScriptedPeer.connected()
        try peer.send(close: code)
        #expect(peer.state == .reconnecting)
        #expect(peer.dials.count == (code == 2 ? 1 : 2))
    }

    @Test(arguments: request + conversation)
    func `A conversation ends at once if its link says so`(code: UInt16) throws {
        let peer = try ScriptedPeer.connected()
        try peer.send(close: code)
        #expect(peer.moves.contains(.disconnected) && !peer.moves.contains(.reconnecting))
        #expect(peer.endings.count == 1 && peer.endings != [.linkLost])
        try peer.run(.seconds(20))
        #expect(peer.dials.count == 1)
    }

    @Test(arguments: link + request)
    func `A resume that is refused on one link is tried over another`(code: UInt16) throws {
        let peer = try ScriptedPeer.asking()
        try peer.send(close: code)
        #expect(peer.state == .reconnecting)
        try peer.run(.seconds(2))
        #expect(peer.dials.count == 3)
    }

    @Test(arguments: conversation)
    func `A resume ends when the other side says that the conversation is over`(code: UInt16) throws {
        let peer = try ScriptedPeer.asking()
        try peer.send(close: code)
        #expect(peer.endings.count == 1)
        try peer.run(.seconds(20))
        #expect(peer.dials.count == 2)
    }

    @Test func `The close code of a later version is recorded unchanged`() throws {
        let witness = LinkWitness()
        let peer = try ScriptedPeer.connected { $0.layers.append(witness) }
        try peer.send(close: 0x0305)
        #expect(witness.endings == [LinkEnding(reason: "the peer left", code: 0x0305, isByPeer: true)])
    }
}
