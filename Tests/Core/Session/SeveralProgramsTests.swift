import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests several sessions of one service that act for one identity, as several programs of one person do.
@Suite struct SeveralProgramsTests {
    private let place = Neighbourhood()
    private let pumas = TrustStore.ephemeral()
    private let lynxs = TrustStore.ephemeral()
    private let puma = Identity.ephemeral(seed: 101)
    private let lynx = Identity.ephemeral(seed: 102)

    private func delegate(of identity: Identity, _ number: UInt64 = 1) -> Identity {
        identity.makeDelegate(withKeyOf: .ephemeral(seed: 200 + number))
    }

    /// Pairs the two identities, as each store knows the other.
    private func pairIdentities() {
        pumas.pair(lynx.peerID, name: DisplayName(fitting: "Lynx"))
        lynxs.pair(puma.peerID, name: DisplayName(fitting: "Puma"))
    }

    /// Announces a session of `peer` to `member`, at an address where `peer` or nobody is.
    private func announce(
        _ peer: PeerID, of identity: PeerID?, called name: String = "Puma #2", at address: TransportAddress,
        to member: SessionProbe
    ) {
        let driver = member.session.driver
        let advertisement = Advertisement(
            service: "test", peer: peer, name: DisplayName(fitting: name), identity: identity)
        driver.routeFound(Sighting(address: address, advertisement: advertisement), by: driver.transports[0])
    }

    /// A session of Lynx, and an impostor that was announced to it as a session of Puma.
    private func hostWithForger() throws -> (host: SessionProbe, forger: SessionProbe) {
        pairIdentities()
        let host = place.join("Lynx", role: .client, trust: lynxs, identity: lynx)
        let forger = place.join("Puma", role: .server, identity: .ephemeral(seed: 66))
        try place.run(.seconds(1))
        announce(forger.id, of: puma.peerID, at: forger.address, to: host)
        return (host, forger)
    }

    @Test("Programs of two paired people are paired, each with each, by their names and without a warning")
    func eachWithEach() throws {
        pairIdentities()
        let first = [puma, delegate(of: puma, 1), delegate(of: puma, 2)].map {
            place.join("Puma", trust: pumas, identity: $0) { $0.security = .paired }
        }
        let second = [lynx, delegate(of: lynx, 3), delegate(of: lynx, 4)].map {
            place.join("Lynx", trust: lynxs, identity: $0) { $0.security = .paired }
        }
        try place.run(.seconds(1))
        for one in first {
            for other in second {
                #expect(one.peer(other.id)?.trust == .paired, "already when it is seen")
                #expect(one.peer(other.id)?.identity == lynx.peerID)
                #expect(one.peer(other.id)?.name.description == "Lynx")
                one.invite(other)
                try place.run(.seconds(1))
                #expect(one.outcomes.last == .success(other.id))
                #expect(other.invitations.last?.peer.trust == .paired)
                #expect(other.invitations.last?.peer.identity == puma.peerID)
            }
        }
        #expect(pumas.peers.map(\.id) == [lynx.peerID] && lynxs.peers.map(\.id) == [puma.peerID])
        #expect(lynxs.peers.map(\.name.description) == ["Puma"])
    }

    @Test("Programs of one person connect as if they were paired, and are not remembered as somebody")
    func own() throws {
        let first = place.join("Puma", trust: pumas, identity: puma) { $0.security = .paired }
        let second = place.join("Puma", trust: pumas, identity: delegate(of: puma)) { $0.security = .paired }
        try place.run(.seconds(1))
        second.invite(first)
        try place.run(.seconds(1))
        #expect(second.outcomes == [.success(first.id)])
        #expect(first.peer(second.id)?.trust == .paired && second.peer(first.id)?.trust == .paired)
        second.pair(with: first)
        try place.run(.seconds(1))
        #expect(second.failure?.description.contains("needs no pairing") == true)
        #expect(pumas.peers.isEmpty)
    }

    @Test("Pairing from any program pairs the identities, so all other programs are paired as well")
    func pairing() throws {
        let one = place.join("Puma", trust: pumas, identity: delegate(of: puma)) { $0.acceptsPairing = true }
        let other = place.join("Lynx", trust: lynxs, identity: delegate(of: lynx, 2)) {
            $0.acceptsPairing = true
        }
        try place.run(.seconds(1))
        one.pair(with: other)
        try place.run(.seconds(1))
        one.session.peer(other.id).confirmPairing(digitsAgree: true)
        other.session.peer(one.id).confirmPairing(digitsAgree: true)
        try place.run(.seconds(1))
        #expect(pumas.isPaired(lynx.peerID) && lynxs.isPaired(puma.peerID))
        #expect(
            !pumas.isPaired(other.id) && !lynxs.isPaired(one.id), "keys that are gone with their programs")
        let third = place.join("Lynx", trust: lynxs, identity: lynx) { $0.security = .paired }
        try place.run(.seconds(1))
        one.invite(third)
        try place.run(.seconds(1))
        #expect(one.outcomes.last == .success(third.id))
    }

    @Test(
        "A peer of an earlier version is not paired with a key that ends with its program",
        arguments: [true, false])
    func pairingWithEarlierVersion(isAsking: Bool) throws {
        let one = place.join("Puma", trust: pumas, identity: delegate(of: puma)) { $0.acceptsPairing = true }
        let other = place.join("Lynx", trust: lynxs, identity: lynx) { $0.acceptsPairing = true }
        other.session.machine.hello.acceptsDelegations = false
        try place.run(.seconds(1))
        if isAsking { one.pair(with: other) } else { other.pair(with: one) }
        try place.run(.seconds(1))
        #expect(one.codes.isEmpty && other.codes.isEmpty)
        #expect(one.pairingEnds.map(\.description).contains { $0.contains("`nigh identity` names it") })
        #expect(pumas.peers.isEmpty && lynxs.peers.isEmpty)
    }

    @Test("Unpairing ends the conversations with all programs of that person")
    func unpairing() throws {
        pairIdentities()
        let host = place.join("Lynx", trust: lynxs, identity: lynx) { $0.security = .paired }
        let guests = [puma, delegate(of: puma, 1), delegate(of: puma, 2)].map {
            place.join("Puma", trust: pumas, identity: $0)
        }
        try place.run(.seconds(1))
        for guest in guests { guest.invite(host) }
        try place.run(.seconds(1))
        #expect(guests.map { host.state(of: $0.id) } == [.connected, .connected, .connected])
        host.session.peer(guests[1].id).unpair()
        try place.run(.seconds(1))
        #expect(!lynxs.isPaired(puma.peerID))
        #expect(!guests.map { host.state(of: $0.id) }.contains(.connected))
        guests[2].invite(host)
        try place.run(.seconds(1))
        #expect(guests[2].failure?.cause == .notPaired)
    }

    @Test(
        "A peer that was announced as a session of a paired identity, and is not, gets nothing and is reported"
    )
    func forgedAnnouncement() throws {
        let (host, mallory) = try hostWithForger()
        try place.run(.milliseconds(10))
        #expect(host.peer(mallory.id)?.trust == .paired, "as with any announcement of a paired peer")
        host.invite(mallory)
        try place.run(.seconds(1))
        #expect(host.failure?.cause == .insecure(.falselyAnnounced(as: puma.peerID)))
        #expect(mallory.invitations.isEmpty)
        #expect(host.peer(mallory.id)?.trust == .falselyAnnounced(as: puma.peerID))
        #expect(host.reportedTrust(of: mallory.id) == .falselyAnnounced(as: puma.peerID))
        // A program that tries again would give it what is meant for somebody else.
        host.invite(mallory)
        try place.run(.seconds(1))
        #expect(host.failure?.cause == .insecure(.falselyAnnounced(as: puma.peerID)))
        host.pair(with: mallory)
        try place.run(.seconds(1))
        #expect(host.failure?.cause == .insecure(.falselyAnnounced(as: puma.peerID)))
        #expect(mallory.invitations.isEmpty && mallory.codes.isEmpty)
        // The announcement is repeated, and counts for nothing any more.
        announce(mallory.id, of: puma.peerID, called: "Puma #3", at: mallory.address, to: host)
        try place.run(.milliseconds(10))
        #expect(host.peer(mallory.id)?.trust == .falselyAnnounced(as: puma.peerID))
    }

    @Test(
        "A peer of which somebody has announced falsely that it is another's session is met by address, or when it invites"
    )
    func slanderedPeer() throws {
        pairIdentities()
        let host = place.join("Lynx", trust: lynxs, identity: lynx)
        let hare = place.join("Hare", role: .server)
        try place.run(.seconds(1))
        announce(hare.id, of: puma.peerID, at: hare.address, to: host)
        host.invite(hare)
        try place.run(.seconds(1))
        #expect(host.failure?.cause == .insecure(.falselyAnnounced(as: puma.peerID)))
        host.session.invite(at: hare.address) { [weak host] in host?.outcomes.append($0) }
        try place.run(.seconds(1))
        #expect(host.outcomes.last == .success(hare.id))
        #expect(host.peer(hare.id)?.trust == .known, "after a conversation with its own key")
    }

    @Test("An announcement that is taken back while the peer is dialled does not hide that it was false")
    func withdrawnAnnouncement() throws {
        let (host, mallory) = try hostWithForger()
        host.invite(mallory)
        announce(mallory.id, of: nil, at: mallory.address, to: host)
        try place.run(.seconds(1))
        #expect(host.failure?.cause == .insecure(.falselyAnnounced(as: puma.peerID)))
        #expect(mallory.invitations.isEmpty)
    }

    @Test("A forged announcement gets an impostor into no session for paired peers, however it connects")
    func forgedAnnouncementToStrictSession() throws {
        pairIdentities()
        let host = place.join("Lynx", trust: lynxs, identity: lynx) { $0.security = .paired }
        let mallory = place.join("Puma", identity: .ephemeral(seed: 66))
        try place.run(.seconds(1))
        announce(mallory.id, of: puma.peerID, at: mallory.address, to: host)
        mallory.invite(host)
        try place.run(.seconds(1))
        #expect(mallory.failure?.cause == .notPaired && host.invitations.isEmpty)
        host.pair(with: mallory)
        try place.run(.seconds(1))
        #expect(host.codes.isEmpty || host.peer(mallory.id)?.trust != .paired)
        #expect(!lynxs.isPaired(mallory.id))
    }

    @Test("A peer that is known by its own key is nobody's session, whatever is announced of it")
    func knownPeerAnnouncedAsOther() throws {
        pairIdentities()
        let host = place.join("Lynx", role: .client, trust: lynxs, identity: lynx)
        let known = place.join("Hare", role: .server)
        lynxs.remember(known.id, name: DisplayName(fitting: "Hare"))
        try place.run(.seconds(1))
        announce(known.id, of: puma.peerID, called: "Hare", at: known.address, to: host)
        #expect(host.peer(known.id)?.trust == .known)
        host.invite(known)
        try place.run(.seconds(1))
        #expect(host.outcomes == [.success(known.id)])
    }

    @Test("A peer that acts for another identity on the next link of a conversation loses the conversation")
    func changedIdentity() throws {
        let host = place.join("Lynx", trust: lynxs, identity: lynx)
        let guest = place.join("Puma", identity: delegate(of: puma))
        try place.run(.seconds(1))
        guest.invite(host)
        try place.run(.seconds(1))
        #expect(host.state(of: guest.id) == .connected)
        guest.session.machine.hello.delegation = nil
        guest.faults.cut()
        try place.run(.seconds(5))
        let ends = host.events.compactMap { event -> NighError.Cause? in
            event.stateChange?.peer.id == guest.id ? event.stateChange?.cause?.cause : nil
        }
        #expect(
            ends.contains(.protocolViolation("the identity has changed during a conversation")), "\(ends)")
    }

    @Test("Without encryption nobody acts for anybody")
    func plaintext() throws {
        let one = place.join("Puma", identity: delegate(of: puma)) { $0.security = .none }
        let other = place.join("Lynx") { $0.security = .none }
        try place.run(.seconds(1))
        one.invite(other)
        try place.run(.seconds(1))
        #expect(one.outcomes == [.success(other.id)])
        #expect(other.peer(one.id)?.identity == one.id && one.session.identity == one.id)
    }
}
