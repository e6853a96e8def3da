import NighTestKit
import Testing

@testable import NighCore

/// Tests several sessions of one service that act for one identity, as several programs of one person do.
@Suite struct SeveralProgramsTests {
    private let network = SimulatedNetwork()
    private let pumas = TrustStore.ephemeral()
    private let lynxs = TrustStore.ephemeral()
    private let puma = Identity.ephemeral(seed: 101)
    private let lynx = Identity.ephemeral(seed: 102)

    private func delegate(of identity: Identity, _ number: UInt64 = 1) -> Identity {
        identity.makeDelegate(withKeyOf: .ephemeral(seed: 200 + number))
    }

    /// The error of a call to a peer that was announced as a session of Puma, and is not.
    private var forged: NighError.Cause { .insecure(.falselyAnnounced(as: puma.peerID)) }

    /// Pairs the two identities, as each store knows the other.
    private func pairIdentities() {
        pumas.pair(lynx.peerID, name: DisplayName(fitting: "Lynx"))
        lynxs.pair(puma.peerID, name: DisplayName(fitting: "Puma"))
    }

    /// A session of Lynx, and an impostor that was announced to it as a session of Puma.
    private func hostWithForger() throws -> (host: SessionProbe, forger: SessionProbe) {
        pairIdentities()
        let host = network.join("Lynx", role: .client, identity: lynx, trust: lynxs)
        let forger = network.join("Puma", role: .server, identity: .ephemeral(seed: 66))
        try network.run(for: .seconds(1))
        host.seeAnnouncement(of: forger.id, identity: puma.peerID, at: forger.address)
        return (host, forger)
    }

    @Test func `Programs of two paired people are paired, each with each, by their names`() throws {
        pairIdentities()
        let first = [puma, delegate(of: puma, 1), delegate(of: puma, 2)].map {
            network.join("Puma", identity: $0, trust: pumas) { $0.security = .paired }
        }
        let second = [lynx, delegate(of: lynx, 3), delegate(of: lynx, 4)].map {
            network.join("Lynx", identity: $0, trust: lynxs) { $0.security = .paired }
        }
        try network.run(for: .seconds(1))
        for one in first {
            for other in second {
                #expect(one.peer(other.id)?.trust == .paired, "already when it is seen")
                #expect(one.peer(other.id)?.identity == lynx.peerID)
                #expect(one.peer(other.id)?.name.description == "Lynx")
                try network.invite(other, from: one)
                #expect(one.outcomes.last == .success(other.id))
                #expect(other.invitations.last?.peer.trust == .paired)
                #expect(other.invitations.last?.peer.identity == puma.peerID)
            }
        }
        #expect(pumas.peers.map(\.id) == [lynx.peerID] && lynxs.peers.map(\.id) == [puma.peerID])
        #expect(lynxs.peers.map(\.name.description) == ["Puma"])
    }

    @Test func `Programs of one person connect as if paired, and are not remembered as somebody`() throws {
        let first = network.join("Puma", identity: puma, trust: pumas) { $0.security = .paired }
        let second = network.join("Puma", identity: delegate(of: puma), trust: pumas) {
            $0.security = .paired
        }
        try network.run(for: .seconds(1))
        try network.invite(first, from: second)
        #expect(second.outcomes == [.success(first.id)])
        #expect(first.peer(second.id)?.trust == .paired && second.peer(first.id)?.trust == .paired)
        try network.pair(second, with: first)
        #expect(second.failure?.description.contains("needs no pairing") == true)
        #expect(pumas.peers.isEmpty)
    }

    @Test func `Pairing from any program pairs the identities, and so all other programs`() throws {
        let one = network.join("Puma", identity: delegate(of: puma), trust: pumas) {
            $0.acceptsPairing = true
        }
        let other = network.join("Lynx", identity: delegate(of: lynx, 2), trust: lynxs) {
            $0.acceptsPairing = true
        }
        try network.run(for: .seconds(1))
        try network.pair(one, with: other)
        try network.confirmPairing(one, other)
        #expect(pumas.isPaired(lynx.peerID) && lynxs.isPaired(puma.peerID))
        #expect(
            !pumas.isPaired(other.id) && !lynxs.isPaired(one.id), "keys that are gone with their programs")
        let third = network.join("Lynx", identity: lynx, trust: lynxs) { $0.security = .paired }
        try network.run(for: .seconds(1))
        try network.invite(third, from: one)
        #expect(one.outcomes.last == .success(third.id))
    }

    @Test(arguments: [true, false])
    func `A peer of an earlier version is not paired with a key of one program`(isAsking: Bool) throws {
        let one = network.join("Puma", identity: delegate(of: puma), trust: pumas) {
            $0.acceptsPairing = true
        }
        let other = network.join("Lynx", identity: lynx, trust: lynxs) { $0.acceptsPairing = true }
        other.machine.hello.acceptsDelegations = false
        try network.run(for: .seconds(1))
        if isAsking { one.pair(with: other) } else { other.pair(with: one) }
        try network.run(for: .seconds(1))
        #expect(one.codes.isEmpty && other.codes.isEmpty)
        #expect(one.pairingEnds.map(\.description).contains { $0.contains("`nigh identity` names it") })
        #expect(pumas.peers.isEmpty && lynxs.peers.isEmpty)
    }

    @Test func `Unpairing ends the conversations with all programs of that person`() throws {
        pairIdentities()
        let host = network.join("Lynx", identity: lynx, trust: lynxs) { $0.security = .paired }
        let guests = [puma, delegate(of: puma, 1), delegate(of: puma, 2)].map {
            network.join("Puma", identity: $0, trust: pumas)
        }
        try network.run(for: .seconds(1))
        for guest in guests { guest.invite(host) }
        try network.run(for: .seconds(1))
        #expect(guests.map { host.state(of: $0.id) } == [.connected, .connected, .connected])
        host.session.peer(guests[1].id).unpair()
        try network.run(for: .seconds(1))
        #expect(!lynxs.isPaired(puma.peerID))
        #expect(!guests.map { host.state(of: $0.id) }.contains(.connected))
        try network.invite(host, from: guests[2])
        #expect(guests[2].failure?.cause == .notPaired)
    }

    @Test func `A peer that was falsely announced as a paired one gets nothing and is reported`() throws {
        let (host, mallory) = try hostWithForger()
        try network.run(for: .milliseconds(10))
        #expect(host.peer(mallory.id)?.trust == .paired, "as with any announcement of a paired peer")
        try network.invite(mallory, from: host)
        #expect(host.failure?.cause == forged)
        #expect(mallory.invitations.isEmpty)
        #expect(host.peer(mallory.id)?.trust == .falselyAnnounced(as: puma.peerID))
        #expect(host.reportedTrust(of: mallory.id) == .falselyAnnounced(as: puma.peerID))
        // A program that tries again would give it what is meant for somebody else.
        try network.invite(mallory, from: host)
        #expect(host.failure?.cause == forged)
        try network.pair(host, with: mallory)
        #expect(host.failure?.cause == forged)
        #expect(mallory.invitations.isEmpty && mallory.codes.isEmpty)
        // The announcement is repeated, and counts for nothing any more.
        host.seeAnnouncement(of: mallory.id, called: "Puma #3", identity: puma.peerID, at: mallory.address)
        try network.run(for: .milliseconds(10))
        #expect(host.peer(mallory.id)?.trust == .falselyAnnounced(as: puma.peerID))
    }

    @Test func `A peer of which somebody else has announced falsely who it is is met by address`() throws {
        pairIdentities()
        let host = network.join("Lynx", identity: lynx, trust: lynxs)
        let hare = network.join("Hare", role: .server)
        try network.run(for: .seconds(1))
        host.seeAnnouncement(of: hare.id, identity: puma.peerID, at: hare.address)
        try network.invite(hare, from: host)
        #expect(host.failure?.cause == forged)
        try network.invite(at: hare.address, from: host)
        #expect(host.outcomes.last == .success(hare.id))
        #expect(host.peer(hare.id)?.trust == .known, "after a conversation with its own key")
    }

    @Test func `An announcement that is taken back while the peer is dialled counts as false`() throws {
        let (host, mallory) = try hostWithForger()
        host.invite(mallory)
        host.seeAnnouncement(of: mallory.id, identity: nil, at: mallory.address)
        try network.run(for: .seconds(1))
        #expect(host.failure?.cause == forged)
        #expect(mallory.invitations.isEmpty)
    }

    @Test func `An identity that was not announced is reported once, when the peer has proven it`() throws {
        let host = network.join("Lynx", role: .client, identity: lynx, trust: lynxs)
        let guest = network.join("Puma", role: .server, identity: delegate(of: puma), accepting: false)
        try network.run(for: .seconds(1))
        host.seeAnnouncement(of: guest.id, called: "Puma", identity: nil, at: guest.address)
        #expect(host.peer(guest.id)?.identity == guest.id)
        func changes() -> Int { host.events.count { if case .peerChanged = $0 { true } else { false } } }
        let before = changes()
        try network.invite(guest, from: host)
        #expect(host.state(of: guest.id) == .connecting && changes() == before + 1)
        #expect(host.peer(guest.id)?.identity == puma.peerID)
        // Once it is known, a hello that proves it again is no news.
        host.session.cancelInvitation(of: guest.id)
        try network.run(for: .seconds(1))
        try network.invite(guest, from: host)
        #expect(host.state(of: guest.id) == .connecting && changes() == before + 1)
    }

    @Test func `A forged announcement gets an impostor into no session for paired peers`() throws {
        pairIdentities()
        let host = network.join("Lynx", identity: lynx, trust: lynxs) { $0.security = .paired }
        let mallory = network.join("Puma", identity: .ephemeral(seed: 66))
        try network.run(for: .seconds(1))
        host.seeAnnouncement(of: mallory.id, identity: puma.peerID, at: mallory.address)
        try network.invite(host, from: mallory)
        #expect(mallory.failure?.cause == .notPaired && host.invitations.isEmpty)
        try network.pair(host, with: mallory)
        #expect(host.codes.isEmpty || host.peer(mallory.id)?.trust != .paired)
        #expect(!lynxs.isPaired(mallory.id))
    }

    @Test
    func `A peer that is known by its own key is nobody's session, whatever is announced of it`() throws {
        pairIdentities()
        let host = network.join("Lynx", role: .client, identity: lynx, trust: lynxs)
        let known = network.join("Hare", role: .server)
        lynxs.remember(known.id, name: DisplayName(fitting: "Hare"))
        try network.run(for: .seconds(1))
        host.seeAnnouncement(of: known.id, called: "Hare", identity: puma.peerID, at: known.address)
        #expect(host.peer(known.id)?.trust == .known)
        try network.invite(known, from: host)
        #expect(host.outcomes == [.success(known.id)])
    }

    @Test func `A peer that acts for another identity on the next link loses the conversation`() throws {
        let host = network.join("Lynx", identity: lynx, trust: lynxs)
        let guest = network.join("Puma", identity: delegate(of: puma))
        try network.run(for: .seconds(1))
        try network.invite(host, from: guest)
        #expect(host.state(of: guest.id) == .connected)
        guest.machine.hello.delegation = nil
        guest.faults.cut()
        try network.run(for: .seconds(5))
        #expect(host.endings == [.protocolViolation("the identity has changed during a conversation")])
    }

    @Test func `Without encryption nobody acts for anybody`() throws {
        let one = network.join("Puma", identity: delegate(of: puma)) { $0.security = .none }
        let other = network.join("Lynx") { $0.security = .none }
        try network.run(for: .seconds(1))
        try network.invite(other, from: one)
        #expect(one.outcomes == [.success(other.id)])
        #expect(other.peer(one.id)?.identity == one.id && one.session.identity == one.id)
    }
}
