import NighTestKit
import Testing

@testable import NighCore

/// Tests which peers a session connects to, and what it reports to its program about a peer's key.
@Suite struct TrustPolicyTests {
    private let network = SimulatedNetwork()
    private let memory = TrustStore.ephemeral()

    /// Two sessions that see each other. Puma's store is `memory`.
    private func meet(
        _ pumas: SessionSecurity = .encrypted, lynxs: SessionSecurity = .encrypted, pumaAccepts: Bool = true,
        lynxAccepts: Bool = true
    ) throws -> (puma: SessionProbe, lynx: SessionProbe) {
        let puma = network.join("Puma", trust: memory, accepting: pumaAccepts) { $0.security = pumas }
        let lynx = network.join("Lynx", number: 77, accepting: lynxAccepts) { $0.security = lynxs }
        try network.run(for: .seconds(1))
        return (puma, lynx)
    }

    private func pairLynx() {
        memory.pair(Identity.ephemeral(seed: 77).peerID, name: DisplayName(fitting: "Lynx"))
    }

    // MARK: Known and new

    @Test func `A peer is known after its first conversation`() throws {
        let (puma, lynx) = try meet()
        try network.invite(puma, from: lynx)
        #expect(puma.invitations.map(\.peer.trust) == [.new])
        lynx.session.close {}
        try network.run(for: .seconds(2))
        #expect(memory.peers.map(\.id) == [lynx.id])

        let again = network.join("Lynx", number: 77)
        try network.run(for: .seconds(1))
        try network.invite(puma, from: again)
        #expect(puma.invitations.map(\.peer.trust) == [.new, .known])
    }

    @Test func `A known name with another key is flagged before it is accepted`() throws {
        let puma = network.join("Puma", trust: memory, accepting: false)
        let lynx = Identity.ephemeral(seed: 77).peerID
        memory.remember(lynx, name: DisplayName(fitting: "Lynx"))
        let impostor = network.join("Lynx", number: 78)
        try network.run(for: .seconds(1))
        #expect(puma.peer(impostor.id)?.trust == .newWithKnownName(of: [lynx]), "already when it is seen")
        try network.invite(puma, from: impostor)
        #expect(puma.invitations.map(\.peer.trust) == [.newWithKnownName(of: [lynx])])
    }

    @Test func `A peer that is only seen or declined is not remembered`() throws {
        let (puma, lynx) = try meet(pumaAccepts: false)
        try network.invite(puma, from: lynx)
        try #require(puma.invitations.last).decline()
        try network.run(for: .seconds(1))
        #expect(memory.peers.isEmpty)
    }

    @Test func `No peer is trusted or remembered without encryption`() throws {
        let (puma, lynx) = try meet(.none, lynxs: .none)
        try network.invite(puma, from: lynx)
        #expect(puma.invitations.map(\.peer.trust) == [nil])
        #expect(memory.peers.isEmpty)
        try network.pair(lynx, with: puma)
        #expect(lynx.failure?.stage == .pairing)
        #expect(lynx.failure?.cause == .unavailable("this session has no encryption"))
    }

    // MARK: Paired peers only

    @Test func `A paired session refuses others and both sides get the reason`() throws {
        let (puma, lynx) = try meet(.paired)
        lynx.invite(puma)
        try network.invite(lynx, from: puma)
        #expect(lynx.failure?.cause == .notPaired && puma.failure?.cause == .notPaired)
        #expect(puma.invitations.isEmpty && lynx.invitations.isEmpty)
        #expect(puma.statistics.linksEnded["not paired"] == 1)
        #expect(puma.state(of: lynx.id) == .available && lynx.state(of: puma.id) == .available)
    }

    @Test func `A strict session invites only paired peers by address`() throws {
        let puma = network.join("Puma", role: .client) { $0.security = .paired }
        let lynx = network.join("Lynx", role: .server)
        try network.run(for: .seconds(1))
        try network.invite(at: lynx.address, from: puma)
        #expect(puma.failure?.cause == .notPaired)
        #expect(lynx.invitations.isEmpty)
    }

    /// Puma connects only to paired peers. Lynx was paired with it, and is connected.
    private func pairedAndConnected() throws -> (puma: SessionProbe, lynx: SessionProbe) {
        pairLynx()
        let (puma, lynx) = try meet(.paired)
        try network.invite(puma, from: lynx)
        #expect(puma.state(of: lynx.id) == .connected && puma.invitations.map(\.peer.trust) == [.paired])
        return (puma, lynx)
    }

    /// The end of a pairing: by this program, or by others who share its store.
    enum Revocation: CaseIterable { case unpairedHere, unpairedByAnother, forgottenByAnother }

    @Test(arguments: Revocation.allCases)
    func `A revoked pairing ends the conversation and both sides get the reason`(_ way: Revocation) throws {
        let (puma, lynx) = try pairedAndConnected()
        switch way {
        case .unpairedHere: puma.session.peer(lynx.id).unpair()
        case .unpairedByAnother: memory.unpair(lynx.id)
        case .forgottenByAnother: memory.forget(lynx.id)
        }
        try network.run(for: .milliseconds(100))
        for (member, other) in [(puma, lynx), (lynx, puma)] {
            #expect(member.states(of: other.id).suffix(2) == [.disconnected, .available])
            if way != .unpairedHere { #expect(member.endings == [.notPaired]) }
        }
        #expect(puma.peer(lynx.id)?.trust == (way == .forgottenByAnother ? .new : .known))
        #expect(memory.peers.map(\.isPaired) == (way == .forgottenByAnother ? [] : [false]))
        try network.invite(puma, from: lynx)
        #expect(lynx.failure?.cause == .notPaired)
    }

    @Test func `A peer unpaired while the link is broken gets the reason on the next link`() throws {
        let (puma, lynx) = try pairedAndConnected()
        for member in [puma, lynx] { member.faults.block(dials: .refuse) }
        lynx.faults.cut()
        try network.run(for: .seconds(1))
        #expect(lynx.state(of: puma.id) == .reconnecting)
        memory.unpair(lynx.id)
        try network.run(for: .seconds(1))
        #expect(puma.lastCause(of: lynx.id)?.cause == .notPaired)
        #expect(lynx.state(of: puma.id) == .reconnecting)
        for member in [puma, lynx] { member.faults.unblock() }
        // Long before the `grace` for a lost link is over.
        try network.run(for: .seconds(4))
        #expect(lynx.state(of: puma.id) == .available)
        #expect(lynx.lastCause(of: puma.id)?.cause == .notPaired)
    }

    @Test func `A pending invitation ends when its pairing is revoked`() throws {
        pairLynx()
        let (puma, lynx) = try meet(.paired, pumaAccepts: false)
        try network.invite(puma, from: lynx)
        let invitation = try #require(puma.invitations.last)
        memory.unpair(lynx.id)
        try network.run(for: .milliseconds(100))
        #expect(lynx.failure?.cause == .notPaired)
        invitation.accept()
        try network.run(for: .seconds(1))
        #expect(puma.state(of: lynx.id) == .available && lynx.state(of: puma.id) == .available)
    }

    @Test func `A change of a peers trust is reported`() throws {
        let (puma, lynx) = try meet()
        try network.invite(puma, from: lynx)
        func reportedTrusts() -> [PeerTrust?] {
            puma.events.compactMap {
                if case .peerChanged(let peer) = $0, peer.id == lynx.id { peer.trust } else { nil }
            }
        }
        memory.pair(lynx.id, name: DisplayName(fitting: "Lynx"))
        try network.run(for: .milliseconds(100))
        #expect(reportedTrusts() == [.paired])
        memory.unpair(lynx.id)
        try network.run(for: .milliseconds(100))
        #expect(reportedTrusts() == [.paired, .known])
        #expect(puma.state(of: lynx.id) == .connected, "this session talks to anybody")
    }

    @Test func `Unpairing withdraws the invitation`() throws {
        pairLynx()
        let (puma, lynx) = try meet(.paired, lynxAccepts: false)
        try network.invite(lynx, from: puma)
        #expect(lynx.invitations.count == 1)
        puma.session.peer(lynx.id).unpair()
        try network.run(for: .seconds(1))
        #expect(puma.failure?.cause == .notPaired)
        #expect(puma.state(of: lynx.id) == .available)
        #expect(lynx.endedInvitations.count == 1)
    }

    @Test func `Encrypted and plaintext sessions refuse each other with the reason`() throws {
        let open = network.join("Open") { $0.security = .none }
        let secret = network.join("Secret")
        try network.run(for: .seconds(1))
        try network.invite(secret, from: open)
        #expect(open.failure?.cause == .noCommonSecurity(theyEncrypt: true))
        try network.invite(open, from: secret)
        #expect(secret.failure?.cause == .noCommonSecurity(theyEncrypt: false))
        #expect(secret.statistics.linksEnded["no common security"] == 2)
        #expect(open.invitations.isEmpty && secret.invitations.isEmpty)
    }
}
