import NighCalls
import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite("A guest of a session") struct GuestTests {
    private static func send(_ text: String, from one: SessionProbe, to other: PeerID) throws {
        try one.session.trySend(Array(text.utf8), to: other)
    }

    /// The link of the conversation that a session has with a peer.
    private static func link(of probe: SessionProbe, to peer: PeerID) throws -> Link {
        try #require(probe.session.driver.machine.peers[peer]?.link)
    }

    /// Sends a frame that the session itself would not send.
    private static func force(
        _ type: FrameType, _ payload: [UInt8], from probe: SessionProbe, to peer: PeerID
    ) throws {
        let link = try link(of: probe, to: peer)
        link.machine.control.write(type, payload: payload)
        probe.session.driver.machine.markDirty(link)
        probe.session.driver.flushSoon()
    }

    /// A statement that a key acts for another one.
    private static let delegation = Identity.ephemeral(seed: 90).makeDelegate(
        withKeyOf: .ephemeral(seed: 500)
    )
    .delegation(service: "test", incarnation: 1)

    // MARK: What it may

    @Test("talks with the session, which sees that it is one")
    func talks() throws {
        let house = try GuestHouse()
        let guest = house.visit()
        try house.enter(guest)
        #expect(guest.outcomes == [.success(house.host.id)])
        #expect(house.host.state(of: guest.id) == .connected)
        #expect(house.host.peer(guest.id)?.trust == .guest)
        try Self.send("from the guest", from: guest, to: house.host.id)
        try Self.send("from the host", from: house.host, to: guest.id)
        try house.run(.seconds(1))
        #expect(house.host.texts == ["from the guest"] && guest.texts == ["from the host"])
    }

    @Test("is remembered nowhere")
    func notRemembered() throws {
        let house = try GuestHouse()
        let (guest, peer) = (house.visit(), house.join("Peer"))
        try house.run(.seconds(1))
        try house.enter(guest)
        peer.session.invite(house.host.id) { _ in }
        try house.run(.seconds(1))
        #expect(house.trust.peers.map(\.id) == [peer.id])
        guest.session.disconnect(house.host.id) { _ in }
        try house.run(.seconds(1))
        #expect(house.trust.peers.map(\.id) == [peer.id])
    }

    @Test("gets a hello that offers only what guests may use")
    func hello() throws {
        let house = try GuestHouse {
            $0.layers = [Calls()]
            $0.datagrams = true
        }
        let guest = house.visit()
        try house.enter(guest)
        let hello = try #require(try Self.link(of: guest, to: house.host.id).machine.peerHello)
        #expect(!hello.hasDatagrams && hello.delegation == nil && !hello.acceptsDelegations)
        for purpose in StreamPurpose.allCases where !purpose.isForGuests {
            #expect(hello.streams?.accept(purpose) == false)
        }
        // Peers get all of it.
        let peer = house.join("Peer")
        try house.run(.seconds(1))
        peer.session.invite(house.host.id) { _ in }
        try house.run(.seconds(1))
        let full = try #require(try Self.link(of: peer, to: house.host.id).machine.peerHello)
        #expect(full.hasDatagrams && full.streams?.accept(.calls) == true)
    }

    // MARK: Who it is

    @Test("that says another PeerID than the transport has found is cut off")
    func anotherPeer() throws {
        let house = try GuestHouse()
        let victim = Identity.ephemeral(seed: 77).peerID
        let guest = house.visit(as: victim)
        try house.enter(guest)
        #expect(guest.failure.map { "\($0)".contains("another PeerID") } == true, "\(guest.outcomes)")
        #expect(house.host.events.allSatisfy { $0.changedPeer == nil })
        #expect(house.host.session.inspection.peers.isEmpty && house.host.session.inspection.links == 0)
    }

    @Test("cannot take the place of a peer that is connected")
    func peersPlace() throws {
        let house = try GuestHouse()
        let peer = house.join("Peer")
        try house.run(.seconds(1))
        peer.session.invite(house.host.id) { _ in }
        try house.run(.seconds(1))
        // The guest has the peer's key pair, and says hello as the peer. The desk has given it another PeerID.
        let guest = house.visit(identity: .ephemeral(seed: 2), as: Identity.ephemeral(seed: 77).peerID)
        #expect(guest.id == peer.id)
        try house.enter(guest)
        #expect(house.host.state(of: peer.id) == .connected)
        #expect(house.host.peer(peer.id)?.trust != .guest)
    }

    @Test("acts for no other identity, whatever its hello says")
    func delegation() throws {
        let house = try GuestHouse()
        let guest = house.visit()
        guest.session.driver.machine.hello.delegation = Self.delegation
        #expect(Self.delegation != nil)
        try house.enter(guest)
        #expect(house.host.session.driver.machine.peers[guest.id]?.identity.current == guest.id)
        #expect(house.host.peer(guest.id)?.trust == .guest)
    }

    // MARK: Pairing

    @Test("cannot be paired by the session")
    func notPairedByHost() throws {
        let house = try GuestHouse { $0.acceptsPairing = true }
        let guest = house.visit()
        try house.enter(guest)
        house.host.pair(with: guest)
        try house.run(.seconds(1))
        guard case .failure(let error)? = house.host.outcomes.last else {
            Issue.record("it was paired, or nothing was said")
            return
        }
        #expect(error.stage == .pairing && "\(error.cause)".contains("guest"))
        #expect(house.host.state(of: guest.id) == .connected)
        #expect(!house.trust.isPaired(guest.id))
    }

    @Test("cannot be paired while it is away")
    func notPairedWhileAway() throws {
        let house = try GuestHouse { $0.acceptsPairing = true }
        let guest = house.visit()
        try house.enter(guest)
        guest.faults.block(.all)
        house.desk.cut(guest.id)
        try house.run(.seconds(1))
        #expect(house.host.state(of: guest.id) == .reconnecting)
        house.host.pair(with: guest)
        try house.run(.milliseconds(1))
        #expect(house.host.outcomes.count == 1)
    }

    @Test("that asks to be paired is cut off, and no person is asked", arguments: [false, true])
    func notPairedByGuest(acts: Bool) throws {
        let house = try GuestHouse { $0.acceptsPairing = true }
        let guest = house.visit()
        try house.enter(guest)
        // A session that acts for an identity refuses some pairings with other words.
        if acts {
            house.host.session.driver.machine.hello.delegation = Self.delegation
        }
        let value = try #require(PairingValue([UInt8](repeating: 1, count: 32)))
        let link = try Self.link(of: guest, to: house.host.id)
        link.machine.send(.commitment(value))
        guest.session.driver.machine.markDirty(link)
        guest.session.driver.flushSoon()
        try house.run(.seconds(1))
        #expect(house.host.lastCause(of: guest.id)?.cause.isViolation == true)
        #expect(house.host.codes.isEmpty && house.host.pairingEnds.isEmpty && house.host.pairedPeers.isEmpty)
    }

    // MARK: Streams

    @Test(
        "opens no stream that reaches beyond the session's program",
        arguments: [.relay, .calls, .actors, .forward] as [StreamPurpose])
    func forbiddenStream(purpose: StreamPurpose) throws {
        let taker = StreamTaker([.relay, .calls, .actors, .forward, .files])
        let house = try GuestHouse { $0.layers = [taker] }
        let guest = house.visit()
        try house.enter(guest)
        // Its own session refuses to open one.
        nonisolated(unsafe) var opened: Result<ByteStream, NighError>?
        guest.session.openStream(named: "a", to: house.host.id, for: purpose) { opened = $0 }
        #expect(throws: NighError.self) { try opened?.get() }
        try Self.force(
            .streamControl, StreamControl.open(name: "a", for: purpose).payload(for: 1), from: guest,
            to: house.host.id)
        try house.run(.seconds(1))
        #expect(house.host.lastCause(of: guest.id)?.cause.isViolation == true)
        #expect(taker.taken == [])
    }

    @Test("opens streams for the program and for files")
    func allowedStreams() throws {
        let taker = StreamTaker([.files])
        let house = try GuestHouse { $0.layers = [taker] }
        let guest = house.visit()
        try house.enter(guest)
        for purpose in [.program, .files] as [StreamPurpose] {
            guest.session.openStream(named: "a", to: house.host.id, for: purpose) { _ in }
        }
        try house.run(.seconds(1))
        #expect(taker.taken == [.files])
        #expect(house.host.events.contains { if case .streamOpened = $0 { true } else { false } })
        #expect(house.host.state(of: guest.id) == .connected)
    }

    // MARK: Links

    @Test("resumes its conversation after a cut, and every message arrives exactly once")
    func resumes() throws {
        let house = try GuestHouse()
        let guest = house.visit()
        try house.enter(guest)
        var sent: [String] = []
        for round in 0..<5 {
            for number in 0..<4 {
                let text = "\(round)-\(number)"
                sent.append(text)
                try Self.send(text, from: guest, to: house.host.id)
                try Self.send(text, from: house.host, to: guest.id)
            }
            house.desk.cut(guest.id)
            try house.run(.seconds(3))
            #expect(house.host.state(of: guest.id) == .connected)
        }
        #expect(house.host.texts == sent && guest.texts == sent)
        #expect(house.desk.pipeCount == 6)
        #expect(house.host.peer(guest.id)?.trust == .guest)
    }

    @Test("that loads its page again begins a new conversation, and is the same guest")
    func reloads() throws {
        let house = try GuestHouse()
        let first = house.visit()
        try house.enter(first)
        try Self.send("before", from: first, to: house.host.id)
        try house.run(.seconds(1))
        first.session.crash()
        let second = house.visit()
        #expect(second.id == first.id)
        try house.enter(second)
        #expect(second.outcomes == [.success(house.host.id)])
        try Self.send("after", from: second, to: house.host.id)
        try house.run(.seconds(1))
        #expect(house.host.texts == ["before", "after"])
        let meetings = house.host.events.count { if case .connected = $0 { true } else { false } }
        let partings = house.host.events.count { if case .disconnected = $0 { true } else { false } }
        #expect(meetings == 2 && partings == 1)
        #expect(house.host.peer(second.id)?.trust == .guest)
    }

    @Test("that stays away is given up after the 5 minutes of its transport")
    func graceEnds() throws {
        let house = try GuestHouse()
        let guest = house.visit()
        try house.enter(guest)
        guest.session.crash()
        house.desk.cut(guest.id)
        try house.run(.seconds(4 * 60 + 50))
        #expect(house.host.state(of: guest.id) == .reconnecting)
        try house.run(.seconds(20))
        #expect(house.host.state(of: guest.id) != .reconnecting)
    }

    /// How many conversations of the host have ended.
    private static func partings(_ house: GuestHouse) -> Int {
        house.host.events.count { if case .disconnected = $0 { true } else { false } }
    }

    @Test("that is revoked is sent away, and the session does not wait for it", arguments: [false, true])
    func revoked(isAway: Bool) throws {
        let house = try GuestHouse()
        let guest = house.visit()
        try house.enter(guest)
        if isAway {
            guest.faults.block(.all)
            house.desk.cut(guest.id)
            try house.run(.seconds(1))
        }
        house.host.session.revokeGuest(guest.id)
        try house.run(.milliseconds(1))
        #expect(house.desk.revoked == [guest.id])
        #expect(Self.partings(house) == 1)
        #expect(house.host.session.inconsistencies == [])
    }

    @Test("whose invitation waits may be revoked")
    func revokedInviting() throws {
        let house = try GuestHouse()
        house.host.reaction = nil
        let guest = house.visit()
        try house.enter(guest)
        #expect(house.host.invitations.count == 1)
        house.host.session.revokeGuest(guest.id)
        try house.run(.milliseconds(1))
        #expect(house.host.endedInvitations.count == 1)
        try house.run(.seconds(1))
        #expect(house.host.session.inconsistencies == [])
    }

    @Test("is the only one that can be revoked")
    func revokesGuestsOnly() throws {
        let house = try GuestHouse()
        let peer = house.join("Peer")
        try house.run(.seconds(1))
        peer.session.invite(house.host.id) { _ in }
        try house.run(.seconds(1))
        house.host.session.revokeGuest(peer.id)
        try house.run(.seconds(1))
        #expect(house.host.state(of: peer.id) == .connected && Self.partings(house) == 0)
    }

    // MARK: Plaintext

    @Test("is the only one that comes in without encryption")
    func otherPlaintext() throws {
        let house = try GuestHouse()
        let plain = house.join("Plain") { $0.security = .none }
        plain.session.invite(at: TransportAddress(scheme: "memory", value: "Host")) {
            plain.outcomes.append($0)
        }
        try house.run(.seconds(5))
        guard case .failure? = plain.outcomes.last else {
            Issue.record("a peer without encryption was let in: \(plain.outcomes)")
            return
        }
        #expect(!house.host.session.inspection.peers.contains { $0.state.hasConversation })
    }

    @Test("is let in only by a session that admits guests without encryption")
    func notAdmitted() throws {
        for wraps in [false, true] {
            let error = try #require(Self.refusal(wraps: wraps) { $0.admitsUnencryptedGuests = false })
            #expect(error.stage == .configuring && error.transport == GuestDesk.schemeName)
            #expect(
                "\(error)".contains("encryption") && error.advice?.contains("admitsUnencryptedGuests") == true
            )
        }
    }

    @Test("is not let in by a session that talks to paired peers only")
    func pairedOnly() throws {
        for wraps in [false, true] {
            let error = try #require(
                Self.refusal(wraps: wraps) {
                    $0.admitsUnencryptedGuests = true
                    $0.security = .paired
                })
            #expect(error.stage == .configuring && "\(error)".contains("paired"))
        }
    }

    /// Why a session is not made with a transport that has guests; nil if it is made. A program may have wrapped the
    /// transport in the one that checks the contract.
    private static func refusal(
        wraps: Bool, _ adjust: (inout SessionConfiguration) -> Void
    ) -> NighError? {
        var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: "Host"))
        adjust(&configuration)
        let desk = GuestDesk(on: MemoryHub())
        do throws(NighError) {
            _ = try Session(
                checking: configuration, identity: .ephemeral(seed: 1), trust: .ephemeral(),
                transports: [wraps ? CheckedTransport(desk) : desk], loop: VirtualEventLoop())
            return nil
        } catch {
            return error
        }
    }
}

extension NighError.Cause {
    fileprivate var isViolation: Bool { if case .protocolViolation = self { true } else { false } }
}

/// A layer that takes streams for purposes, and does nothing with them.
///
/// `@unchecked Sendable`: everything happens on the one virtual loop.
private final class StreamTaker: ConversationLayer, @unchecked Sendable {
    let purposes: [StreamPurpose]
    private(set) var taken: [StreamPurpose] = []

    init(_ purposes: [StreamPurpose]) { self.purposes = purposes }

    func receive(_ stream: ByteStream) { taken.append(stream.purpose) }
}
