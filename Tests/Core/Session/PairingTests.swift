import NighTestKit
import Testing

@testable import NighCore

/// Tests two sessions that are being paired, over any kind of link.
@Suite struct PairingTests {
    private let network = SimulatedNetwork()
    private let pumasTrust = TrustStore.ephemeral()
    private let lynxsTrust = TrustStore.ephemeral()

    private func two(
        accepting: Bool = true, areConnected: Bool = false
    ) throws -> (puma: SessionProbe, lynx: SessionProbe) {
        let members = [("Puma", pumasTrust), ("Lynx", lynxsTrust)].map { name, trust in
            network.join(name, trust: trust) { $0.acceptsPairing = accepting }
        }
        try network.run(for: .seconds(1))
        if areConnected { try network.invite(members[1], from: members[0]) }
        return (members[0], members[1])
    }

    /// Two sessions whose people see the digits.
    private func twoWithDigits(areConnected: Bool = false) throws -> (puma: SessionProbe, lynx: SessionProbe)
    {
        let (puma, lynx) = try two(areConnected: areConnected)
        try network.pair(puma, with: lynx)
        try #require(puma.codes.count == 1 && puma.codes == lynx.codes)
        return (puma, lynx)
    }

    private func expectQuiet(_ members: SessionProbe..., at location: SourceLocation = #_sourceLocation) {
        for member in members {
            #expect(member.machine.peers.values.allSatisfy { $0.pairing == nil }, sourceLocation: location)
            #expect(
                member.machine.links.values.allSatisfy { $0.purpose != .pairing }, sourceLocation: location)
        }
    }

    // MARK: Digits

    @Test(arguments: [false, true])
    func `Confirming the same digits pairs both peers`(whileConnected: Bool) throws {
        let (puma, lynx) = try twoWithDigits(areConnected: whileConnected)
        #expect(puma.pairedPeers.isEmpty && !pumasTrust.isPaired(lynx.id), "before anybody has confirmed")
        lynx.confirmPairing(with: puma)
        try network.run(for: .seconds(1))
        #expect(lynx.pairedPeers.isEmpty && !lynxsTrust.isPaired(puma.id), "before both have confirmed")
        puma.confirmPairing(with: lynx)
        try network.run(for: .seconds(1))
        #expect(puma.pairedPeers == [lynx.id] && lynx.pairedPeers == [puma.id])
        #expect(pumasTrust.isPaired(lynx.id) && lynxsTrust.isPaired(puma.id))
        #expect(puma.outcomes.last == .success(lynx.id))
        #expect(puma.peer(lynx.id)?.trust == .paired)
        #expect(puma.reportedTrust(of: lynx.id) == .paired && lynx.reportedTrust(of: puma.id) == .paired)
        #expect(puma.state(of: lynx.id) == (whileConnected ? .connected : .available))
        expectQuiet(puma, lynx)
    }

    @Test func `Different digits pair no peers`() throws {
        let (puma, lynx) = try twoWithDigits()
        puma.confirmPairing(with: lynx)
        lynx.confirmPairing(with: puma, digitsAgree: false)
        try network.run(for: .seconds(1))
        for member in [puma, lynx] { #expect(member.pairingEnds == [.pairingRefused(.digitsDiffer)]) }
        #expect(pumasTrust.peers.isEmpty && lynxsTrust.peers.isEmpty)
        expectQuiet(puma, lynx)
    }

    /// The attacker in the middle has one key and a connection to each side. It can only pair with both as itself.
    @Test func `A man in the middle makes the digits differ`() throws {
        let (puma, lynx) = try two()
        let towardsPuma = network.join("Lynx", number: 99) { $0.acceptsPairing = true }
        let towardsLynx = network.join("Puma", number: 99)
        try network.run(for: .seconds(1))
        try network.invite(at: towardsPuma.address, from: puma)
        #expect(puma.outcomes.last == .success(towardsPuma.id), "who is talked to is the one in the middle")
        puma.pair(with: towardsPuma)
        try network.pair(towardsLynx, with: lynx)
        #expect(puma.codes.count == 1 && lynx.codes.count == 1)
        #expect(puma.codes != lynx.codes)
        puma.confirmPairing(with: towardsPuma, digitsAgree: false)
        lynx.confirmPairing(with: towardsLynx, digitsAgree: false)
        try network.run(for: .seconds(1))
        #expect(pumasTrust.peers.allSatisfy { !$0.isPaired } && lynxsTrust.peers.isEmpty)
    }

    // MARK: Who may ask

    @Test func `Pairing an unreachable peer fails at once`() throws {
        let (puma, lynx) = try two()
        puma.faults.plan.refuse = .all
        try network.pair(puma, with: lynx)
        #expect(puma.pairingEnds == [.refused] && puma.failure?.cause == .refused)
        expectQuiet(puma, lynx)
    }

    @Test(arguments: [false, true])
    func `A peer that does not accept pairing, or no longer, is not paired`(acceptedBefore: Bool) throws {
        let (puma, lynx) = try two(accepting: acceptedBefore)
        if acceptedBefore { lynx.session.stopAcceptingPairing() }
        try network.pair(puma, with: lynx)
        #expect(puma.pairingEnds == [.pairingRefused(.notNow)])
        #expect(puma.codes.isEmpty && lynx.codes.isEmpty)
        expectQuiet(puma, lynx)
        lynx.session.startAcceptingPairing()
        try network.pair(puma, with: lynx)
        #expect(puma.codes.count == 1)
    }

    @Test func `A pairing that is under way goes on when its peer stops accepting pairing`() throws {
        let (puma, lynx) = try twoWithDigits()
        lynx.session.stopAcceptingPairing()
        try network.confirmPairing(puma, lynx)
        #expect(puma.pairedPeers == [lynx.id] && lynx.pairedPeers == [puma.id])
        expectQuiet(puma, lynx)
    }

    @Test(arguments: [false, true])
    func `Both sides may start pairing at once`(whileConnected: Bool) throws {
        let (puma, lynx) = try two(areConnected: whileConnected)
        puma.pair(with: lynx)
        try network.pair(lynx, with: puma)
        #expect(puma.codes.count == 1 && puma.codes == lynx.codes)
        try network.confirmPairing(puma, lynx)
        #expect(puma.outcomes.last == .success(lynx.id) && lynx.outcomes.last == .success(puma.id))
        #expect(pumasTrust.isPaired(lynx.id) && lynxsTrust.isPaired(puma.id))
        expectQuiet(puma, lynx)
    }

    @Test func `A second pairing is refused as busy`() throws {
        let (puma, lynx) = try twoWithDigits()
        let third = network.join("Third") { $0.acceptsPairing = true }
        try network.run(for: .seconds(1))
        puma.pair(with: third)
        try network.pair(third, with: lynx)
        #expect(third.outcomes.count == 1 && third.pairingEnds == [.pairingRefused(.busy)])
        #expect(puma.failure?.cause == .pairingRefused(.busy))
        #expect(puma.codes.count == 1 && puma.pairingEnds.isEmpty, "the first one goes on")
    }

    // MARK: Its end

    enum Interruption: CaseIterable { case silence, brokenLink, brokenLinkOfAConversation, leaving }

    @Test(arguments: Interruption.allCases)
    func `A pairing that is interrupted ends on both sides, and another can begin`(
        _ interruption: Interruption
    ) throws {
        let areConnected = interruption == .brokenLinkOfAConversation || interruption == .leaving
        let (puma, lynx) = try twoWithDigits(areConnected: areConnected)
        puma.confirmPairing(with: lynx)
        switch interruption {
        case .silence: try network.run(for: .seconds(118))
        case .brokenLink, .brokenLinkOfAConversation: puma.faults.cut()
        case .leaving: puma.session.disconnect(lynx.id)
        }
        try network.run(for: .seconds(3))
        #expect(puma.pairingEnds.count == 1 && lynx.pairingEnds.count == 1)
        if interruption == .leaving { #expect(puma.pairingEnds + lynx.pairingEnds == [.left, .peerLeft]) }
        for trust in [pumasTrust, lynxsTrust] { #expect(trust.peers.allSatisfy { !$0.isPaired }) }
        if interruption == .brokenLinkOfAConversation { #expect(puma.state(of: lynx.id) == .connected) }
        expectQuiet(puma, lynx)
        try network.pair(lynx, with: puma)
        #expect(puma.codes.count == 2 && puma.codes == lynx.codes)
    }

    @Test func `A restarted peer may ask again and the old digits end`() throws {
        let (puma, lynx) = try two()
        try network.pair(lynx, with: puma)
        #expect(puma.codes.count == 1)
        // Lynx ends without a goodbye, so that Puma still believes in the old link.
        lynx.faults.stall()
        lynx.session.crash()
        let again = network.join("Lynx", number: 2) { $0.acceptsPairing = true }
        try network.run(for: .seconds(1))
        try network.pair(again, with: puma)
        #expect(puma.pairingEnds.count == 1)
        #expect(puma.codes.count == 2 && puma.codes.last == again.codes.last)
        try network.confirmPairing(puma, again)
        #expect(puma.pairedPeers == [again.id] && again.pairedPeers == [puma.id])
    }

    /// Its first request has no digits yet, and the asked side believes in the old link.
    @Test(arguments: [false, true])
    func `A restarted peer may ask again before there are digits`(greaterAsks: Bool) throws {
        let members = try two()
        let pumaAsks = (members.puma.id > members.lynx.id) == greaterAsks
        let (asker, asked) = pumaAsks ? (members.puma, members.lynx) : (members.lynx, members.puma)
        asker.faults.plan.delay = .milliseconds(100)
        asker.pair(with: asked)
        while asked.machine.peers[asker.id]?.pairing == nil { try network.run(for: .milliseconds(10)) }
        #expect(asked.codes.isEmpty)
        asked.faults.block()
        asker.session.crash()
        try network.run(for: .milliseconds(200))
        asked.faults.unblock()
        let again = network.join(pumaAsks ? "Puma" : "Lynx", number: pumaAsks ? 1 : 2) {
            $0.acceptsPairing = true
        }
        try network.run(for: .seconds(1))
        again.pair(with: asked)
        // The first request has had a nonce.
        try network.run(for: .seconds(6))
        #expect(again.id == asker.id && asked.codes.count == 1 && asked.codes == again.codes)
    }

    /// A message of the exchange that has ended crosses the first message of the next one.
    @Test func `Pairing again at once never ends the conversation`() throws {
        let (puma, lynx) = try twoWithDigits(areConnected: true)
        puma.faults.plan.delay = .milliseconds(100)
        lynx.confirmPairing(with: puma)
        try network.run(for: .milliseconds(10))
        puma.confirmPairing(with: lynx, digitsAgree: false)
        puma.pair(with: lynx)
        try network.run(for: .seconds(2))
        #expect(puma.state(of: lynx.id) == .connected && lynx.state(of: puma.id) == .connected)
        #expect(puma.pairedPeers.isEmpty && lynx.pairedPeers.isEmpty)
        puma.confirmPairing(with: lynx, digitsAgree: false)
        lynx.confirmPairing(with: puma, digitsAgree: false)
        try network.run(for: .seconds(1))
        expectQuiet(puma, lynx)
        #expect(puma.states(of: lynx.id).last == .connected)
    }

    /// Works in every order in which the session ends things, and although one conversation has no link.
    @Test(arguments: [false, true])
    func `Closing the session ends the pairing and reports it on both sides`(greaterIsPaired: Bool) throws {
        let puma = network.join("Puma") { $0.acceptsPairing = true }
        let others = (0..<2).map { network.join("Lynx \($0)") { $0.acceptsPairing = true } }
            .sorted { $0.id < $1.id }
        let (paired, connected) = greaterIsPaired ? (others[1], others[0]) : (others[0], others[1])
        try network.run(for: .seconds(1))
        puma.invite(connected)
        try network.pair(puma, with: paired)
        #expect(puma.state(of: connected.id) == .connected && puma.codes.count == 1)
        connected.faults.block()
        connected.faults.cut()
        try network.run(for: .milliseconds(10))
        #expect(puma.state(of: connected.id) == .reconnecting)
        puma.session.close {}
        try network.run(for: .seconds(2))
        #expect(puma.pairingEnds == [.closed])
        #expect(puma.failure?.cause == .closed && puma.failure?.stage == .pairing)
        #expect(paired.pairingEnds == [.pairingRefused(.declined)])
        expectQuiet(paired)
    }
}

/// Tests a session that several peers ask for a pairing before there are digits.
@Suite struct PairingTurnsTests {
    private let network = SimulatedNetwork { $0.acceptsPairing = true }

    private func join(
        _ names: String..., adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> [SessionProbe] {
        let members = names.map { network.join($0, adjust: adjust) }
        try network.run(for: .seconds(1))
        return members
    }

    /// Lets a peer ask for a pairing and never say anything again.
    private func fallSilent(_ peer: SessionProbe, asking other: SessionProbe) throws {
        peer.faults.plan.delay = .milliseconds(100)
        peer.pair(with: other)
        while pairing(of: other, with: peer) == nil { try network.run(for: .milliseconds(10)) }
        peer.faults.stall()
    }

    private func pairing(of member: SessionProbe, with other: SessionProbe) -> Pairing? {
        member.machine.peers[other.id]?.pairing
    }

    /// Lets a peer ask for a pairing and give up at once.
    private func askAndGiveUp(_ peer: SessionProbe, asking other: SessionProbe, _ time: Duration) throws {
        peer.pair(with: other)
        peer.confirmPairing(with: other, digitsAgree: false)
        try network.loop.run(for: time)
    }

    @Test func `A peer that asks and then says nothing keeps nobody out`() throws {
        let members = try join("Lynx", "Puma", "Silent")
        let (lynx, puma, silent) = (members[0], members[1], members[2])
        try fallSilent(silent, asking: lynx)
        puma.pair(with: lynx)
        // As long as two nonces are apart.
        try network.run(for: .seconds(6))
        #expect(puma.codes.count == 1 && puma.codes == lynx.codes)
        try network.confirmPairing(puma, lynx)
        #expect(puma.outcomes == [.success(lynx.id)] && lynx.pairedPeers == [puma.id])
        #expect(pairing(of: lynx, with: silent) == nil, "it is busy while digits are shown")
    }

    @Test func `A peer that asks and then says nothing does not keep the program from asking`() throws {
        let members = try join("Lynx", "Puma", "Silent")
        let (lynx, puma) = (members[0], members[1])
        try fallSilent(members[2], asking: lynx)
        try network.pair(lynx, with: puma)
        #expect(puma.codes.count == 1 && puma.codes == lynx.codes && lynx.outcomes.isEmpty)
    }

    @Test func `A peer that does not reveal its nonce loses its link`() throws {
        let members = try join("Lynx", "Silent")
        try fallSilent(members[1], asking: members[0])
        try network.run(for: .seconds(11))
        #expect(pairing(of: members[0], with: members[1]) == nil && members[0].machine.links.isEmpty)
    }

    @Test func `Peers that ask and then say nothing do not take the last places`() throws {
        let lynx = try join("Lynx") { $0.limits.unauthenticatedPipes = 2 }[0]
        for silent in try join("Silent 0", "Silent 1") { try fallSilent(silent, asking: lynx) }
        let puma = try join("Puma")[0]
        try network.invite(lynx, from: puma)
        #expect(puma.outcomes == [.success(lynx.id)])
    }

    @Test func `The program hears nothing of peers that ask and give up`() throws {
        let members = try join("Lynx", "Stranger")
        let (lynx, stranger) = (members[0], members[1])
        try network.invite(lynx, from: stranger)
        let before = lynx.events.count
        for _ in 0..<300 { try askAndGiveUp(stranger, asking: lynx, .milliseconds(1)) }
        #expect(lynx.events.count == before)
        #expect(lynx.statistics.refusals["pairing refused"] == 300, "they are counted")
        let puma = try join("Puma")[0]
        puma.pair(with: lynx)
        try network.run(for: .seconds(6))
        #expect(puma.codes.count == 1 && puma.codes == lynx.codes)
    }

    /// An attacker in the middle may give up unseen each exchange whose digits differ from those that the other side's
    /// screen shows. With 24 nonces in the two minutes that these stand, it hits one of a million with a chance of one
    /// in 40,000; with as many as it can ask for, it would hit.
    @Test func `A peer gets few nonces, however often it asks`() throws {
        let witness = LinkWitness()
        let lynx = try join("Lynx") { $0.layers.append(witness) }[0]
        let stranger = try join("Stranger")[0]
        try network.invite(lynx, from: stranger)
        for _ in 0..<1_000 { try askAndGiveUp(stranger, asking: lynx, .milliseconds(20)) }
        // The header of a frame of 33 bytes of the type `pair`, and the kind of the message.
        let beginning: [UInt8] = [0, 0, 33, FrameType.pair.rawValue, 2]
        let sent = witness.sent
        let nonces = sent.indices.count { sent[$0...].starts(with: beginning) }
        #expect((1...5).contains(nonces), "\(nonces) in 20 s")
    }

    /// Each peer that waits gets its turn, also if another one asks again and again.
    @Test func `A peer that waits is not overtaken by one that asks anew`() throws {
        let members = try join("Lynx", "Puma", "Stranger")
        let (lynx, puma, stranger) = (members[0], members[1], members[2])
        for peer in [puma, stranger] { peer.invite(lynx) }
        try network.run(for: .seconds(1))
        try askAndGiveUp(stranger, asking: lynx, .milliseconds(1))
        puma.pair(with: lynx)
        for _ in 0..<300 where puma.codes.isEmpty {
            try askAndGiveUp(stranger, asking: lynx, .milliseconds(20))
        }
        #expect(puma.codes.count == 1 && puma.codes == lynx.codes)
    }
}
