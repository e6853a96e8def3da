import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests two sessions that are being paired, over any kind of link.
@Suite struct PairingTests {
    private let place = Neighbourhood()
    private let pumasTrust = TrustStore.ephemeral()
    private let lynxsTrust = TrustStore.ephemeral()

    private func two(
        accepting: Bool = true, areConnected: Bool = false,
        _ adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (puma: Neighbourhood.Member, lynx: Neighbourhood.Member) {
        let puma = place.join("Puma", trust: pumasTrust) {
            adjust(&$0)
            $0.acceptsPairing = accepting
        }
        let lynx = place.join("Lynx", trust: lynxsTrust) {
            adjust(&$0)
            $0.acceptsPairing = accepting
        }
        try place.run(.seconds(1))
        if areConnected {
            puma.session.invite(lynx.id) { _ in }
            try place.run(.seconds(1))
        }
        return (puma, lynx)
    }

    private func areQuiet(_ members: Neighbourhood.Member...) -> Bool {
        members.allSatisfy { member in
            member.session.inconsistencies.isEmpty
                && member.session.driver.machine.peers.values.allSatisfy { $0.pairing == nil }
                && member.session.driver.machine.links.values.allSatisfy { $0.purpose != .pairing }
        }
    }

    @Test(arguments: [false, true])
    func confirmingTheSameDigitsPairsBothPeers(whileConnected: Bool) throws {
        let (puma, lynx) = try two(areConnected: whileConnected)
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        #expect(puma.codes.count == 1)
        #expect(puma.codes == lynx.codes)
        #expect(puma.pairedPeers.isEmpty && !pumasTrust.isPaired(lynx.id), "before anybody has confirmed")
        lynx.session.peer(puma.id).confirmPairing(digitsAgree: true)
        try place.run(.seconds(1))
        #expect(lynx.pairedPeers.isEmpty && !lynxsTrust.isPaired(puma.id), "before both have confirmed")
        puma.session.peer(lynx.id).confirmPairing(digitsAgree: true)
        try place.run(.seconds(1))
        #expect(puma.pairedPeers == [lynx.id] && lynx.pairedPeers == [puma.id])
        #expect(pumasTrust.isPaired(lynx.id) && lynxsTrust.isPaired(puma.id))
        #expect(puma.outcomes.last == .success(lynx.id))
        #expect(puma.peer(lynx.id)?.trust == .paired)
        #expect(puma.reportedTrust(of: lynx.id) == .paired && lynx.reportedTrust(of: puma.id) == .paired)
        #expect(puma.state(of: lynx.id) == (whileConnected ? .connected : .available))
        #expect(areQuiet(puma, lynx))
    }

    @Test func pairedPeersOfAStrictSessionConnect() throws {
        let (puma, lynx) = try two { $0.security = .paired }
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        puma.session.peer(lynx.id).confirmPairing(digitsAgree: true)
        lynx.session.peer(puma.id).confirmPairing(digitsAgree: true)
        try place.run(.seconds(1))
        lynx.invite(puma)
        try place.run(.seconds(1))
        #expect(lynx.outcomes.last == .success(puma.id))
    }

    @Test func aStrictSessionRefusesAnUnpairedPeer() throws {
        let puma = place.join("Puma", trust: pumasTrust) {
            $0.security = .paired
            $0.acceptsPairing = true
        }
        let lynx = place.join("Lynx")
        try place.run(.seconds(1))
        lynx.invite(puma)
        try place.run(.seconds(1))
        #expect(lynx.failure?.cause == .notPaired)
    }

    @Test func pairingAnUnreachablePeerFailsAtOnce() throws {
        let (puma, lynx) = try two()
        puma.faults.plan.refuse = .all
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        #expect(puma.pairingEnds == [.refused])
        #expect(puma.failure?.cause == .refused)
        #expect(areQuiet(puma, lynx))
    }

    @Test func differentDigitsPairNoPeers() throws {
        let (puma, lynx) = try two()
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        puma.session.peer(lynx.id).confirmPairing(digitsAgree: true)
        lynx.session.peer(puma.id).confirmPairing(digitsAgree: false)
        try place.run(.seconds(1))
        #expect(puma.pairingEnds == [.pairingRefused(.digitsDiffer)])
        #expect(lynx.pairingEnds == [.pairingRefused(.digitsDiffer)])
        #expect(pumasTrust.peers.isEmpty && lynxsTrust.peers.isEmpty)
        #expect(areQuiet(puma, lynx))
    }

    @Test func aPeerThatDoesNotAcceptPairingIsNotPaired() throws {
        let (puma, lynx) = try two(accepting: false)
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        #expect(puma.pairingEnds == [.pairingRefused(.notNow)])
        #expect(lynx.events.allSatisfy { if case .pairingCode = $0 { false } else { true } })
        #expect(areQuiet(puma, lynx))
        lynx.session.startAcceptingPairing()
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        #expect(puma.codes.count == 1)
    }

    @Test func aPeerThatStopsAcceptingPairingIsNotPairedFromThenOn() throws {
        let (puma, lynx) = try two()
        lynx.session.stopAcceptingPairing()
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        #expect(puma.pairingEnds == [.pairingRefused(.notNow)])
        #expect(puma.codes.isEmpty && lynx.codes.isEmpty)
        #expect(areQuiet(puma, lynx))
    }

    @Test func aPairingThatIsUnderWayGoesOnWhenItsPeerStopsAcceptingPairing() throws {
        let (puma, lynx) = try two()
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        lynx.session.stopAcceptingPairing()
        puma.session.peer(lynx.id).confirmPairing(digitsAgree: true)
        lynx.session.peer(puma.id).confirmPairing(digitsAgree: true)
        try place.run(.seconds(1))
        #expect(puma.pairedPeers == [lynx.id] && lynx.pairedPeers == [puma.id])
        #expect(areQuiet(puma, lynx))
    }

    @Test func anUnconfirmedPairingTimesOut() throws {
        let (puma, lynx) = try two()
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        puma.session.peer(lynx.id).confirmPairing(digitsAgree: true)
        try place.run(.seconds(121))
        #expect(puma.pairingEnds.count == 1 && lynx.pairingEnds.count == 1)
        #expect(puma.pairedPeers.isEmpty && lynx.pairedPeers.isEmpty)
        #expect(areQuiet(puma, lynx))
    }

    @Test(arguments: [false, true])
    func bothSidesMayStartPairingAtOnce(whileConnected: Bool) throws {
        let (puma, lynx) = try two(areConnected: whileConnected)
        puma.pair(with: lynx)
        lynx.pair(with: puma)
        try place.run(.seconds(1))
        #expect(puma.codes.count == 1)
        #expect(puma.codes == lynx.codes)
        puma.session.peer(lynx.id).confirmPairing(digitsAgree: true)
        lynx.session.peer(puma.id).confirmPairing(digitsAgree: true)
        try place.run(.seconds(1))
        #expect(puma.outcomes.last == .success(lynx.id) && lynx.outcomes.last == .success(puma.id))
        #expect(pumasTrust.isPaired(lynx.id) && lynxsTrust.isPaired(puma.id))
        #expect(areQuiet(puma, lynx))
    }

    @Test func aSecondPairingIsRefusedAsBusy() throws {
        let (puma, lynx) = try two()
        let third = place.join("Third") { $0.acceptsPairing = true }
        try place.run(.seconds(1))
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        puma.pair(with: third)
        third.pair(with: lynx)
        try place.run(.seconds(1))
        #expect(third.outcomes.count == 1)
        #expect(third.pairingEnds == [.pairingRefused(.busy)])
        #expect(puma.failure?.cause == .pairingRefused(.busy))
        #expect(puma.codes.count == 1 && puma.pairingEnds.isEmpty, "the first one goes on")
    }

    @Test(arguments: [false, true])
    func aLinkThatBreaksEndsThePairing(whileConnected: Bool) throws {
        let (puma, lynx) = try two(areConnected: whileConnected)
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        puma.session.peer(lynx.id).confirmPairing(digitsAgree: true)
        puma.faults.cut()
        try place.run(.seconds(3))
        #expect(puma.pairingEnds.count == 1 && lynx.pairingEnds.count == 1)
        #expect(pumasTrust.peers.allSatisfy { !$0.isPaired } && lynxsTrust.peers.allSatisfy { !$0.isPaired })
        if whileConnected { #expect(puma.state(of: lynx.id) == .connected, "the conversation goes on") }
        #expect(areQuiet(puma, lynx))
    }

    @Test func leavingEndsAPairingInProgress() throws {
        let (puma, lynx) = try two(areConnected: true)
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        puma.session.disconnect(lynx.id)
        try place.run(.seconds(1))
        #expect(puma.pairingEnds == [.left] && lynx.pairingEnds == [.peerLeft])
        #expect(areQuiet(puma, lynx))
        lynx.pair(with: puma)
        try place.run(.seconds(1))
        #expect(puma.codes.count == 2 && puma.codes == lynx.codes, "another can begin")
    }

    @Test func aRestartedPeerMayAskAgainAndTheOldDigitsEnd() throws {
        let (puma, lynx) = try two()
        lynx.pair(with: puma)
        try place.run(.seconds(1))
        #expect(puma.codes.count == 1)
        // Lynx ends without a goodbye, so that Puma still believes in the old link.
        lynx.faults.stall()
        lynx.session.driver.crash()
        let again = place.join("Lynx", seed: 2) { $0.acceptsPairing = true }
        try place.run(.seconds(1))
        again.pair(with: puma)
        try place.run(.seconds(1))
        #expect(puma.pairingEnds.count == 1)
        #expect(puma.codes.count == 2 && puma.codes.last == again.codes.last)
        puma.session.peer(again.id).confirmPairing(digitsAgree: true)
        again.session.peer(puma.id).confirmPairing(digitsAgree: true)
        try place.run(.seconds(1))
        #expect(puma.pairedPeers == [again.id] && again.pairedPeers == [puma.id])
    }

    /// Its first request has no digits yet, and the asked side believes in the old link.
    @Test(arguments: [false, true]) func aRestartedPeerMayAskAgainBeforeThereAreDigits(greaterAsks: Bool)
        throws
    {
        let members = try two()
        let isPumaGreater = members.puma.id > members.lynx.id
        let pumaAsks = isPumaGreater == greaterAsks
        let (asker, asked) = pumaAsks ? (members.puma, members.lynx) : (members.lynx, members.puma)
        asker.faults.plan.delay = .milliseconds(100)
        asker.pair(with: asked)
        while asked.session.driver.machine.peers[asker.id]?.pairing == nil {
            try place.run(.milliseconds(10))
        }
        #expect(asked.codes.isEmpty)
        asked.faults.block()
        asker.session.driver.crash()
        try place.run(.milliseconds(200))
        asked.faults.unblock()
        let again = place.join(pumaAsks ? "Puma" : "Lynx", seed: pumaAsks ? 1 : 2) {
            $0.acceptsPairing = true
        }
        try place.run(.seconds(1))
        again.pair(with: asked)
        // The first request has had a nonce.
        try place.run(.seconds(6))
        #expect(again.id == asker.id && asked.codes.count == 1 && asked.codes == again.codes)
    }

    /// A message of the exchange that has ended crosses the first message of the next one.
    @Test func pairingAgainAtOnceNeverEndsTheConversation() throws {
        let (puma, lynx) = try two(areConnected: true)
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        puma.faults.plan.delay = .milliseconds(100)
        lynx.session.peer(puma.id).confirmPairing(digitsAgree: true)
        try place.run(.milliseconds(10))
        puma.session.peer(lynx.id).confirmPairing(digitsAgree: false)
        puma.pair(with: lynx)
        try place.run(.seconds(2))
        #expect(puma.state(of: lynx.id) == .connected && lynx.state(of: puma.id) == .connected)
        #expect(puma.pairedPeers.isEmpty && lynx.pairedPeers.isEmpty)
        puma.session.peer(lynx.id).confirmPairing(digitsAgree: false)
        lynx.session.peer(puma.id).confirmPairing(digitsAgree: false)
        try place.run(.seconds(1))
        #expect(areQuiet(puma, lynx))
        #expect(puma.states(of: lynx.id).last == .connected)
    }

    @Test func closingTheSessionEndsThePairing() throws {
        let (puma, lynx) = try two()
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        puma.session.close {}
        try place.run(.seconds(2))
        #expect(puma.pairingEnds == [.closed])
        #expect(lynx.pairingEnds.count == 1)
        #expect(areQuiet(lynx))
    }

    /// Works in every order in which the session ends things, and although one conversation has no link.
    @Test(arguments: [false, true]) func closingTheSessionReportsThePairingsEnd(greaterIsPaired: Bool) throws
    {
        let puma = place.join("Puma") { $0.acceptsPairing = true }
        let others = (0..<2).map { place.join("Lynx \($0)") { $0.acceptsPairing = true } }
            .sorted { $0.id < $1.id }
        let (paired, connected) = greaterIsPaired ? (others[1], others[0]) : (others[0], others[1])
        try place.run(.seconds(1))
        puma.invite(connected)
        puma.pair(with: paired)
        try place.run(.seconds(1))
        #expect(puma.state(of: connected.id) == .connected && puma.codes.count == 1)
        connected.faults.block()
        connected.faults.cut()
        try place.run(.milliseconds(10))
        #expect(puma.state(of: connected.id) == .reconnecting)
        puma.session.close {}
        try place.run(.seconds(2))
        #expect(puma.pairingEnds == [.closed])
        #expect(puma.failure?.cause == .closed && puma.failure?.stage == .pairing)
        #expect(paired.pairingEnds == [.pairingRefused(.declined)])
    }

    @Test func aClosedSessionSaysThatItCannotPair() throws {
        let (puma, lynx) = try two()
        puma.session.close {}
        try place.run(.seconds(1))
        puma.pair(with: lynx)
        try place.run(.seconds(1))
        #expect(puma.failure?.stage == .pairing && puma.failure?.cause == .closed)
    }

    @Test func anUnknownPeerCannotBePaired() throws {
        let (puma, _) = try two()
        puma.session.pair(Identity.ephemeral().peerID) { [weak puma] in puma?.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(puma.failure?.stage == .pairing && puma.failure?.cause == .unknownPeer)
    }

    /// The attacker in the middle has one key and a connection to each side. It can only pair with both as itself.
    @Test func aManInTheMiddleMakesTheDigitsDiffer() throws {
        let (puma, lynx) = try two()
        let towardsPuma = place.join("Lynx", seed: 99) { $0.acceptsPairing = true }
        let towardsLynx = place.join("Puma", seed: 99)
        try place.run(.seconds(1))
        puma.session.invite(at: towardsPuma.address) { [weak puma] in puma?.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(puma.outcomes.last == .success(towardsPuma.id), "who is talked to is the one in the middle")
        puma.pair(with: towardsPuma)
        towardsLynx.pair(with: lynx)
        try place.run(.seconds(1))
        #expect(puma.codes.count == 1 && lynx.codes.count == 1)
        #expect(puma.codes != lynx.codes)
        puma.session.peer(towardsPuma.id).confirmPairing(digitsAgree: false)
        lynx.session.peer(towardsLynx.id).confirmPairing(digitsAgree: false)
        try place.run(.seconds(1))
        #expect(pumasTrust.peers.allSatisfy { !$0.isPaired } && lynxsTrust.peers.isEmpty)
    }
}
