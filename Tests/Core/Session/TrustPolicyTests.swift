import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests which peers a session connects to, and what it reports to its program about a peer's key.
@Suite struct TrustPolicyTests {
    private let place = Neighbourhood()
    private let memory = TrustStore.ephemeral()

    // MARK: Known and new

    @Test func aPeerIsKnownAfterItsFirstConversation() throws {
        let puma = place.join("Puma", trust: memory)
        let lynx = place.join("Lynx", seed: 77)
        try place.run(.seconds(1))
        lynx.invite(puma)
        try place.run(.seconds(1))
        #expect(puma.invitations.map(\.peer.trust) == [.new])
        lynx.session.close {}
        try place.run(.seconds(2))
        #expect(memory.peers.map(\.id) == [lynx.id])

        let again = place.join("Lynx", seed: 77)
        try place.run(.seconds(1))
        again.invite(puma)
        try place.run(.seconds(1))
        #expect(puma.invitations.map(\.peer.trust) == [.new, .known])
    }

    @Test func aKnownNameWithAnotherKeyIsFlaggedBeforeItIsAccepted() throws {
        let puma = place.join("Puma", accepting: false, trust: memory)
        let lynx = Identity.ephemeral(seed: 77).peerID
        memory.remember(lynx, name: DisplayName(fitting: "Lynx"))
        let impostor = place.join("Lynx", seed: 78)
        try place.run(.seconds(1))
        #expect(puma.peer(impostor.id)?.trust == .newWithKnownName(of: [lynx]), "already when it is seen")
        impostor.invite(puma)
        try place.run(.seconds(1))
        #expect(puma.invitations.map(\.peer.trust) == [.newWithKnownName(of: [lynx])])
    }

    @Test func aPeerThatIsOnlySeenOrDeclinedIsNotRemembered() throws {
        let puma = place.join("Puma", accepting: false, trust: memory)
        let lynx = place.join("Lynx")
        try place.run(.seconds(1))
        lynx.invite(puma)
        try place.run(.seconds(1))
        try #require(puma.invitations.last).decline()
        try place.run(.seconds(1))
        #expect(memory.peers.isEmpty)
    }

    @Test func noPeerIsTrustedOrRememberedWithoutEncryption() throws {
        let puma = place.join("Puma", trust: memory) { $0.security = .none }
        let lynx = place.join("Lynx") { $0.security = .none }
        try place.run(.seconds(1))
        lynx.invite(puma)
        try place.run(.seconds(1))
        #expect(puma.invitations.map(\.peer.trust) == [nil])
        #expect(memory.peers.isEmpty)
        lynx.pair(with: puma)
        try place.run(.seconds(1))
        #expect(lynx.failure?.stage == .pairing)
        #expect(lynx.failure?.cause == .unavailable("this session has no encryption"))
    }

    // MARK: Paired peers only

    @Test func aPairedSessionRefusesOthersAndBothSidesGetTheReason() throws {
        let puma = place.join("Puma") { $0.security = .paired }
        let lynx = place.join("Lynx")
        try place.run(.seconds(1))
        lynx.invite(puma)
        puma.invite(lynx)
        try place.run(.seconds(1))
        #expect(lynx.failure?.cause == .notPaired)
        #expect(puma.failure?.cause == .notPaired)
        #expect(puma.invitations.isEmpty && lynx.invitations.isEmpty)
        #expect(puma.statistics.linksEnded["not paired"] == 1)
        #expect(puma.state(of: lynx.id) == .available && lynx.state(of: puma.id) == .available)
    }

    @Test func aStrictSessionInvitesOnlyPairedPeersByAddress() throws {
        let puma = place.join("Puma", role: .client) { $0.security = .paired }
        let lynx = place.join("Lynx", role: .server)
        try place.run(.seconds(1))
        puma.session.invite(at: lynx.address) { [weak puma] in puma?.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(puma.failure?.cause == .notPaired)
        #expect(lynx.invitations.isEmpty)
    }

    @Test func pairedPeersConverseAndAnUnpairedPeerIsDisconnected() throws {
        let (puma, lynx) = try pairedAndConnected()
        #expect(puma.invitations.map(\.peer.trust) == [.paired])
        puma.session.peer(lynx.id).unpair()
        try place.run(.seconds(1))
        #expect(puma.state(of: lynx.id) == .available)
        #expect(lynx.state(of: puma.id) == .available)
        #expect(memory.peers.map(\.isPaired) == [false])
        lynx.invite(puma)
        try place.run(.seconds(1))
        #expect(lynx.failure?.cause == .notPaired)
    }

    /// Puma connects only to paired peers. Lynx was paired with it, and is connected.
    private func pairedAndConnected() throws -> (puma: Neighbourhood.Member, lynx: Neighbourhood.Member) {
        memory.pair(Identity.ephemeral(seed: 77).peerID, name: DisplayName(fitting: "Lynx"))
        let puma = place.join("Puma", trust: memory) { $0.security = .paired }
        let lynx = place.join("Lynx", seed: 77)
        try place.run(.seconds(1))
        lynx.invite(puma)
        try place.run(.seconds(1))
        #expect(puma.state(of: lynx.id) == .connected)
        return (puma, lynx)
    }

    @Test(arguments: [false, true])
    func aRevokedPairingEndsTheConversationAndBothSidesGetTheReason(isForgotten: Bool) throws {
        let (puma, lynx) = try pairedAndConnected()
        // Not through a call of this session: another session of the program does it, or a store that follows its file.
        if isForgotten { memory.forget(lynx.id) } else { memory.unpair(lynx.id) }
        try place.run(.milliseconds(100))
        #expect(puma.states(of: lynx.id).suffix(2) == [.disconnected, .available])
        #expect(puma.lastCause(of: lynx.id)?.cause == .notPaired)
        #expect(lynx.states(of: puma.id).suffix(2) == [.disconnected, .available])
        #expect(lynx.lastCause(of: puma.id)?.cause == .notPaired)
        #expect(puma.peer(lynx.id)?.trust == (isForgotten ? .new : .known))
        lynx.invite(puma)
        try place.run(.seconds(1))
        #expect(lynx.failure?.cause == .notPaired)
    }

    @Test func aPeerUnpairedWhileTheLinkIsBrokenGetsTheReasonOnTheNextLink() throws {
        let (puma, lynx) = try pairedAndConnected()
        lynx.faults.block(dials: .refuse)
        puma.faults.block(dials: .refuse)
        lynx.faults.cut()
        try place.run(.seconds(1))
        #expect(lynx.state(of: puma.id) == .reconnecting)
        memory.unpair(lynx.id)
        try place.run(.seconds(1))
        #expect(puma.lastCause(of: lynx.id)?.cause == .notPaired)
        #expect(lynx.state(of: puma.id) == .reconnecting)
        lynx.faults.unblock()
        puma.faults.unblock()
        // Long before the `grace` for a lost link is over.
        try place.run(.seconds(4))
        #expect(lynx.state(of: puma.id) == .available)
        #expect(lynx.lastCause(of: puma.id)?.cause == .notPaired)
    }

    @Test func aPendingInvitationEndsWhenItsPairingIsRevoked() throws {
        memory.pair(Identity.ephemeral(seed: 77).peerID, name: DisplayName(fitting: "Lynx"))
        let puma = place.join("Puma", accepting: false, trust: memory) { $0.security = .paired }
        let lynx = place.join("Lynx", seed: 77)
        try place.run(.seconds(1))
        lynx.invite(puma)
        try place.run(.seconds(1))
        let invitation = try #require(puma.invitations.last)
        memory.unpair(lynx.id)
        try place.run(.milliseconds(100))
        #expect(lynx.failure?.cause == .notPaired)
        invitation.accept()
        try place.run(.seconds(1))
        #expect(puma.state(of: lynx.id) == .available && lynx.state(of: puma.id) == .available)
    }

    @Test func aChangeOfAPeersTrustIsReported() throws {
        let puma = place.join("Puma", trust: memory)
        let lynx = place.join("Lynx")
        try place.run(.seconds(1))
        lynx.invite(puma)
        try place.run(.seconds(1))
        func reportedTrusts() -> [PeerTrust?] {
            puma.events.compactMap {
                if case .peerChanged(let peer) = $0, peer.id == lynx.id { peer.trust } else { nil }
            }
        }
        memory.pair(lynx.id, name: DisplayName(fitting: "Lynx"))
        try place.run(.milliseconds(100))
        #expect(reportedTrusts() == [.paired])
        memory.unpair(lynx.id)
        try place.run(.milliseconds(100))
        #expect(reportedTrusts() == [.paired, .known])
        #expect(puma.state(of: lynx.id) == .connected, "this session talks to anybody")
    }

    @Test func unpairingWithdrawsTheInvitation() throws {
        memory.pair(Identity.ephemeral(seed: 77).peerID, name: DisplayName(fitting: "Lynx"))
        let puma = place.join("Puma", trust: memory) { $0.security = .paired }
        let lynx = place.join("Lynx", seed: 77, accepting: false)
        try place.run(.seconds(1))
        puma.invite(lynx)
        try place.run(.seconds(1))
        #expect(lynx.invitations.count == 1)
        puma.session.peer(lynx.id).unpair()
        try place.run(.seconds(1))
        #expect(puma.failure?.cause == .notPaired)
        #expect(puma.state(of: lynx.id) == .available)
        #expect(lynx.endedInvitations.count == 1)
    }

    @Test func encryptedAndPlaintextSessionsRefuseEachOtherWithTheReason() throws {
        let open = place.join("Open") { $0.security = .none }
        let secret = place.join("Secret")
        try place.run(.seconds(1))
        open.invite(secret)
        try place.run(.seconds(1))
        #expect(open.failure?.cause == .noCommonSecurity(theyEncrypt: true))
        secret.invite(open)
        try place.run(.seconds(1))
        #expect(secret.failure?.cause == .noCommonSecurity(theyEncrypt: false))
        #expect(secret.statistics.linksEnded["no common security"] == 2)
        #expect(open.invitations.isEmpty && secret.invitations.isEmpty)
    }
}
