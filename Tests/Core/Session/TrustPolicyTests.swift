import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Whom a session talks to, and what its program is told of a peer's key.
@Suite struct TrustPolicyTests {
    private func invite(_ peer: Neighbourhood.Member, by member: Neighbourhood.Member) {
        member.session.invite(peer.id) { [weak member] in member?.outcomes.append($0) }
    }

    private func failure(of member: Neighbourhood.Member) -> NighError? {
        guard case .failure(let error)? = member.outcomes.last else { return nil }
        return error
    }

    private func invitedBy(_ member: Neighbourhood.Member) -> [Peer] {
        member.events.compactMap { if case .invited(let invitation) = $0 { invitation.peer } else { nil } }
    }

    // MARK: Known and new

    @Test func aPeerOnceTalkedToIsKnownWhenItComesAgain() throws {
        let place = Neighbourhood()
        let memory = TrustStore.ephemeral()
        let puma = place.join("Puma", trust: memory)
        let lynx = place.join("Lynx", seed: 77)
        try place.run(.seconds(1))
        invite(puma, by: lynx)
        try place.run(.seconds(1))
        #expect(invitedBy(puma).map(\.trust) == [.new])
        lynx.session.close {}
        try place.run(.seconds(2))
        #expect(memory.peers.map(\.id) == [lynx.id])

        let again = place.join("Lynx", seed: 77)
        try place.run(.seconds(1))
        invite(puma, by: again)
        try place.run(.seconds(1))
        #expect(invitedBy(puma).map(\.trust) == [.new, .known])
    }

    @Test func aKnownNameWithAnotherKeyIsFlaggedBeforeItIsAccepted() throws {
        let place = Neighbourhood()
        let memory = TrustStore.ephemeral()
        let puma = place.join("Puma", accepting: false, trust: memory)
        let lynx = Identity.ephemeral(seed: 77).peerID
        memory.remember(lynx, name: DisplayName(fitting: "Lynx"))
        let impostor = place.join("Lynx", seed: 78)
        try place.run(.seconds(1))
        #expect(puma.peer(impostor.id)?.trust == .newWithKnownName(of: [lynx]), "already when it is seen")
        invite(puma, by: impostor)
        try place.run(.seconds(1))
        #expect(invitedBy(puma).map(\.trust) == [.newWithKnownName(of: [lynx])])
    }

    @Test func whoIsOnlySeenOrTurnedDownIsNotRemembered() throws {
        let place = Neighbourhood()
        let memory = TrustStore.ephemeral()
        let puma = place.join("Puma", accepting: false, trust: memory)
        let lynx = place.join("Lynx")
        try place.run(.seconds(1))
        invite(puma, by: lynx)
        try place.run(.seconds(1))
        guard
            case .invited(let invitation)? = puma.events.last(where: {
                if case .invited = $0 { true } else { false }
            })
        else {
            Issue.record("not invited")
            return
        }
        puma.session.decline(invitation)
        try place.run(.seconds(1))
        #expect(memory.peers.isEmpty)
    }

    @Test func withoutEncryptionNobodyIsTrustedOrRemembered() throws {
        let place = Neighbourhood()
        let memory = TrustStore.ephemeral()
        let puma = place.join("Puma", trust: memory) { $0.security = .none }
        let lynx = place.join("Lynx") { $0.security = .none }
        try place.run(.seconds(1))
        invite(puma, by: lynx)
        try place.run(.seconds(1))
        #expect(invitedBy(puma).map(\.trust) == [nil])
        #expect(memory.peers.isEmpty)
        lynx.session.pair(puma.id) { [weak lynx] in lynx?.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(failure(of: lynx)?.stage == .pairing)
        #expect(failure(of: lynx)?.cause == .unavailable("this session has no encryption"))
    }

    // MARK: Paired peers only

    @Test func aSessionOfPairedPeersTurnsOthersAwayAndBothSidesAreToldWhy() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma") { $0.security = .paired }
        let lynx = place.join("Lynx")
        try place.run(.seconds(1))
        invite(puma, by: lynx)
        invite(lynx, by: puma)
        try place.run(.seconds(1))
        #expect(failure(of: lynx)?.cause == .notPaired)
        #expect(failure(of: puma)?.cause == .notPaired)
        #expect(invitedBy(puma).isEmpty && invitedBy(lynx).isEmpty)
        #expect(puma.statistics.linksEnded["not paired"] == 1)
        #expect(puma.state(of: lynx.id) == .available && lynx.state(of: puma.id) == .available)
    }

    @Test func byAddressTooOnlyPairedPeersAreTalkedTo() throws {
        let place = Neighbourhood()
        let puma = place.join("Puma", role: .client) { $0.security = .paired }
        let lynx = place.join("Lynx", role: .server)
        try place.run(.seconds(1))
        puma.session.invite(at: lynx.address) { [weak puma] in puma?.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(failure(of: puma)?.cause == .notPaired)
        #expect(invitedBy(lynx).isEmpty)
    }

    @Test func pairedPeersTalkAndWhoIsUnpairedIsDisconnected() throws {
        let place = Neighbourhood()
        let memory = TrustStore.ephemeral()
        memory.pair(Identity.ephemeral(seed: 77).peerID, name: DisplayName(fitting: "Lynx"))
        let puma = place.join("Puma", trust: memory) { $0.security = .paired }
        let lynx = place.join("Lynx", seed: 77)
        try place.run(.seconds(1))
        invite(puma, by: lynx)
        try place.run(.seconds(1))
        #expect(puma.state(of: lynx.id) == .connected)
        #expect(invitedBy(puma).map(\.trust) == [.paired])
        puma.session.unpair(lynx.id)
        try place.run(.seconds(1))
        #expect(puma.state(of: lynx.id) == .available)
        #expect(lynx.state(of: puma.id) == .available)
        #expect(memory.peers.map(\.isPaired) == [false])
        invite(puma, by: lynx)
        try place.run(.seconds(1))
        #expect(failure(of: lynx)?.cause == .notPaired)
    }

    @Test func encryptedAndNotEncryptedDoNotMeetAndBothSayWhy() throws {
        let place = Neighbourhood()
        let open = place.join("Open") { $0.security = .none }
        let secret = place.join("Secret")
        try place.run(.seconds(1))
        invite(secret, by: open)
        try place.run(.seconds(1))
        #expect(failure(of: open)?.cause == .noCommonSecurity(theyEncrypt: true))
        invite(open, by: secret)
        try place.run(.seconds(1))
        #expect(failure(of: secret)?.cause == .noCommonSecurity(theyEncrypt: false))
        #expect(secret.statistics.linksEnded["no common security"] == 2)
        #expect(invitedBy(open).isEmpty && invitedBy(secret).isEmpty)
    }
}
