import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Two sessions being paired, over links as they come.
@Suite struct PairingTests {
    private let place = Neighbourhood()
    private let pumasTrust = TrustStore.ephemeral()
    private let lynxsTrust = TrustStore.ephemeral()

    private func two(
        accepting: Bool = true, _ adjust: (inout SessionConfiguration) -> Void = { _ in }
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
        return (puma, lynx)
    }

    private func pair(_ peer: Neighbourhood.Member, by member: Neighbourhood.Member) {
        member.session.pair(peer.id) { [weak member] in member?.outcomes.append($0) }
    }

    private func codes(of member: Neighbourhood.Member) -> [PairingCode] {
        member.events.compactMap { if case .pairing(_, let code) = $0 { code } else { nil } }
    }

    private func paired(_ member: Neighbourhood.Member) -> [PeerID] {
        member.events.compactMap { if case .paired(let peer) = $0 { peer.id } else { nil } }
    }

    private func ends(of member: Neighbourhood.Member) -> [NighError.Cause] {
        member.events.compactMap { if case .pairingEnded(_, let error) = $0 { error.cause } else { nil } }
    }

    private func areQuiet(_ members: Neighbourhood.Member...) -> Bool {
        members.allSatisfy { member in
            member.session.inconsistencies.isEmpty
                && member.session.driver.machine.peers.values.allSatisfy { $0.pairing == nil }
                && member.session.driver.machine.links.values.allSatisfy { $0.purpose != .pairing }
        }
    }

    @Test(arguments: [false, true])
    func whoSeeTheSameDigitsArePaired(whileConnected: Bool) throws {
        let (puma, lynx) = try two()
        if whileConnected {
            puma.session.invite(lynx.id) { _ in }
            try place.run(.seconds(1))
        }
        pair(lynx, by: puma)
        try place.run(.seconds(1))
        #expect(codes(of: puma).count == 1)
        #expect(codes(of: puma) == codes(of: lynx))
        #expect(paired(puma).isEmpty && !pumasTrust.isPaired(lynx.id), "before anybody has confirmed")
        lynx.session.confirmPairing(with: puma.id, digitsAgree: true)
        try place.run(.seconds(1))
        #expect(paired(lynx).isEmpty && !lynxsTrust.isPaired(puma.id), "before both have confirmed")
        puma.session.confirmPairing(with: lynx.id, digitsAgree: true)
        try place.run(.seconds(1))
        #expect(paired(puma) == [lynx.id] && paired(lynx) == [puma.id])
        #expect(pumasTrust.isPaired(lynx.id) && lynxsTrust.isPaired(puma.id))
        #expect(puma.outcomes.last == .success(lynx.id))
        #expect(puma.peer(lynx.id)?.trust == .paired)
        #expect(puma.state(of: lynx.id) == (whileConnected ? .connected : .available))
        #expect(areQuiet(puma, lynx))
    }

    @Test func pairedOnceThePeersOfAStrictSessionTalk() throws {
        let (puma, lynx) = try two { $0.security = .paired }
        pair(lynx, by: puma)
        try place.run(.seconds(1))
        for (one, other) in [(puma, lynx), (lynx, puma)] {
            one.session.confirmPairing(with: other.id, digitsAgree: true)
        }
        try place.run(.seconds(1))
        lynx.session.invite(puma.id) { [weak lynx] in lynx?.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(lynx.outcomes.last == .success(puma.id))
    }

    @Test func aStrictSessionLetsNobodyInThatOnlyCouldBePaired() throws {
        let puma = place.join("Puma", trust: pumasTrust) {
            $0.security = .paired
            $0.acceptsPairing = true
        }
        let lynx = place.join("Lynx")
        try place.run(.seconds(1))
        lynx.session.invite(puma.id) { [weak lynx] in lynx?.outcomes.append($0) }
        try place.run(.seconds(1))
        guard case .failure(let error)? = lynx.outcomes.last else {
            Issue.record("\(lynx.outcomes)")
            return
        }
        #expect(error.cause == .notPaired)
    }

    @Test func whoSeesOtherDigitsPairsNobody() throws {
        let (puma, lynx) = try two()
        pair(lynx, by: puma)
        try place.run(.seconds(1))
        puma.session.confirmPairing(with: lynx.id, digitsAgree: true)
        lynx.session.confirmPairing(with: puma.id, digitsAgree: false)
        try place.run(.seconds(1))
        #expect(ends(of: puma) == [.pairingRefused(.digitsDiffer)])
        #expect(ends(of: lynx) == [.pairingRefused(.digitsDiffer)])
        #expect(pumasTrust.peers.isEmpty && lynxsTrust.peers.isEmpty)
        #expect(areQuiet(puma, lynx))
    }

    @Test func nobodyIsPairedWithWhoDoesNotLetItselfBeAsked() throws {
        let (puma, lynx) = try two(accepting: false)
        pair(lynx, by: puma)
        try place.run(.seconds(1))
        #expect(ends(of: puma) == [.pairingRefused(.notNow)])
        #expect(lynx.events.allSatisfy { if case .pairing = $0 { false } else { true } })
        #expect(areQuiet(puma, lynx))
        lynx.session.setAcceptingPairing(true)
        pair(lynx, by: puma)
        try place.run(.seconds(1))
        #expect(codes(of: puma).count == 1)
    }

    @Test func nobodyComparesForEver() throws {
        let (puma, lynx) = try two()
        pair(lynx, by: puma)
        try place.run(.seconds(1))
        puma.session.confirmPairing(with: lynx.id, digitsAgree: true)
        try place.run(.seconds(121))
        #expect(ends(of: puma).count == 1 && ends(of: lynx).count == 1)
        #expect(paired(puma).isEmpty && paired(lynx).isEmpty)
        #expect(areQuiet(puma, lynx))
    }

    @Test(arguments: [false, true])
    func bothMayAskAtOnce(whileConnected: Bool) throws {
        let (puma, lynx) = try two()
        if whileConnected {
            puma.session.invite(lynx.id) { _ in }
            try place.run(.seconds(1))
        }
        pair(lynx, by: puma)
        pair(puma, by: lynx)
        try place.run(.seconds(1))
        #expect(codes(of: puma).count == 1)
        #expect(codes(of: puma) == codes(of: lynx))
        for (one, other) in [(puma, lynx), (lynx, puma)] {
            one.session.confirmPairing(with: other.id, digitsAgree: true)
        }
        try place.run(.seconds(1))
        #expect(puma.outcomes.last == .success(lynx.id) && lynx.outcomes.last == .success(puma.id))
        #expect(pumasTrust.isPaired(lynx.id) && lynxsTrust.isPaired(puma.id))
        #expect(areQuiet(puma, lynx))
    }

    @Test func onePairingAtATime() throws {
        let (puma, lynx) = try two()
        let third = place.join("Third") { $0.acceptsPairing = true }
        try place.run(.seconds(1))
        pair(lynx, by: puma)
        try place.run(.seconds(1))
        pair(third, by: puma)
        pair(lynx, by: third)
        try place.run(.seconds(1))
        #expect(third.outcomes.count == 1)
        #expect(ends(of: third) == [.pairingRefused(.busy)])
        guard case .failure(let error)? = puma.outcomes.last else {
            Issue.record("\(puma.outcomes)")
            return
        }
        #expect(error.cause == .pairingRefused(.busy))
        #expect(codes(of: puma).count == 1 && ends(of: puma).isEmpty, "the first one goes on")
    }

    @Test(arguments: [false, true])
    func aLinkThatBreaksEndsThePairing(whileConnected: Bool) throws {
        let (puma, lynx) = try two()
        if whileConnected {
            puma.session.invite(lynx.id) { _ in }
            try place.run(.seconds(1))
        }
        pair(lynx, by: puma)
        try place.run(.seconds(1))
        puma.session.confirmPairing(with: lynx.id, digitsAgree: true)
        puma.faults.cut()
        try place.run(.seconds(3))
        #expect(ends(of: puma).count == 1 && ends(of: lynx).count == 1)
        #expect(pumasTrust.peers.allSatisfy { !$0.isPaired } && lynxsTrust.peers.allSatisfy { !$0.isPaired })
        if whileConnected { #expect(puma.state(of: lynx.id) == .connected, "the conversation goes on") }
        #expect(areQuiet(puma, lynx))
    }

    @Test func leavingEndsThePairingOnTheWay() throws {
        let (puma, lynx) = try two()
        puma.session.invite(lynx.id) { _ in }
        try place.run(.seconds(1))
        pair(lynx, by: puma)
        try place.run(.seconds(1))
        puma.session.disconnect(lynx.id)
        try place.run(.seconds(1))
        #expect(ends(of: puma) == [.left] && ends(of: lynx) == [.peerLeft])
        #expect(areQuiet(puma, lynx))
        pair(puma, by: lynx)
        try place.run(.seconds(1))
        #expect(codes(of: puma).count == 2 && codes(of: puma) == codes(of: lynx), "another can begin")
    }

    @Test func whoWasStartedAnewMayAskAgainAndTheOldDigitsEnd() throws {
        let (puma, lynx) = try two()
        pair(puma, by: lynx)
        try place.run(.seconds(1))
        #expect(codes(of: puma).count == 1)
        // Gone without a word, so that Puma still believes in the old link.
        lynx.faults.stall()
        lynx.session.driver.die()
        let again = place.join("Lynx", seed: 2) { $0.acceptsPairing = true }
        try place.run(.seconds(1))
        pair(puma, by: again)
        try place.run(.seconds(1))
        #expect(ends(of: puma).count == 1)
        #expect(codes(of: puma).count == 2 && codes(of: puma).last == codes(of: again).last)
        puma.session.confirmPairing(with: again.id, digitsAgree: true)
        again.session.confirmPairing(with: puma.id, digitsAgree: true)
        try place.run(.seconds(1))
        #expect(paired(puma) == [again.id] && paired(again) == [puma.id])
    }

    /// What was said to an exchange that has ended crosses the beginning of the next.
    @Test func askingAnewAtOnceCostsAPairingAtMostAndNeverTheConversation() throws {
        let (puma, lynx) = try two()
        puma.session.invite(lynx.id) { _ in }
        try place.run(.seconds(1))
        pair(lynx, by: puma)
        try place.run(.seconds(1))
        puma.faults.plan.delay = .milliseconds(100)
        lynx.session.confirmPairing(with: puma.id, digitsAgree: true)
        try place.run(.milliseconds(10))
        puma.session.confirmPairing(with: lynx.id, digitsAgree: false)
        pair(lynx, by: puma)
        try place.run(.seconds(2))
        #expect(puma.state(of: lynx.id) == .connected && lynx.state(of: puma.id) == .connected)
        #expect(paired(puma).isEmpty && paired(lynx).isEmpty)
        for (one, other) in [(puma, lynx), (lynx, puma)] {
            one.session.confirmPairing(with: other.id, digitsAgree: false)
        }
        try place.run(.seconds(1))
        #expect(areQuiet(puma, lynx))
        #expect(puma.moves(of: lynx.id).last == .connected)
    }

    @Test func closingTheSessionEndsThePairing() throws {
        let (puma, lynx) = try two()
        pair(lynx, by: puma)
        try place.run(.seconds(1))
        puma.session.close {}
        try place.run(.seconds(2))
        #expect(ends(of: puma) == [.closed])
        #expect(ends(of: lynx).count == 1)
        #expect(areQuiet(lynx))
    }

    @Test func anUnknownPeerCannotBePaired() throws {
        let (puma, _) = try two()
        puma.session.pair(Identity.ephemeral().peerID) { [weak puma] in puma?.outcomes.append($0) }
        try place.run(.seconds(1))
        guard case .failure(let error)? = puma.outcomes.last else {
            Issue.record("\(puma.outcomes)")
            return
        }
        #expect(error.stage == .pairing && error.cause == .unknownPeer)
    }

    /// The middle has one key and a connection to either side; it can only pair with both as itself.
    @Test func somebodyInTheMiddleMakesTheDigitsDiffer() throws {
        let (puma, lynx) = try two()
        let towardsPuma = place.join("Lynx", seed: 99) { $0.acceptsPairing = true }
        let towardsLynx = place.join("Puma", seed: 99)
        try place.run(.seconds(1))
        puma.session.invite(at: towardsPuma.address) { [weak puma] in puma?.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(puma.outcomes.last == .success(towardsPuma.id), "who is talked to is the one in the middle")
        pair(towardsPuma, by: puma)
        pair(lynx, by: towardsLynx)
        try place.run(.seconds(1))
        #expect(codes(of: puma).count == 1 && codes(of: lynx).count == 1)
        #expect(codes(of: puma) != codes(of: lynx))
        puma.session.confirmPairing(with: towardsPuma.id, digitsAgree: false)
        lynx.session.confirmPairing(with: towardsLynx.id, digitsAgree: false)
        try place.run(.seconds(1))
        #expect(pumasTrust.peers.allSatisfy { !$0.isPaired } && lynxsTrust.peers.isEmpty)
    }
}
