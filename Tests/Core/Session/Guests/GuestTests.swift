import NighCalls
import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite("A guest of a session") struct GuestTests {
    private static func send(_ text: String, from one: SessionProbe, to other: PeerID) throws {
        try one.session.trySend(Array(text.utf8), to: other)
    }

    /// A statement that a key acts for another one.
    private static let delegation = Identity.ephemeral(seed: 90)
        .makeDelegate(withKeyOf: .ephemeral(seed: 500)).delegation(service: "test", incarnation: 1)

    // MARK: What it may

    @Test func `talks with the session, which sees that it is one`() throws {
        let (house, guest) = try GuestHouse.withGuest()
        #expect(guest.outcomes == [.success(house.host.id)])
        #expect(house.host.state(of: guest.id) == .connected)
        #expect(house.host.peer(guest.id)?.trust == .guest)
        try Self.send("from the guest", from: guest, to: house.host.id)
        try Self.send("from the host", from: house.host, to: guest.id)
        try house.run(.seconds(1))
        #expect(house.host.texts == ["from the guest"] && guest.texts == ["from the host"])
    }

    @Test func `is remembered nowhere`() throws {
        let (house, guest) = try GuestHouse.withGuest()
        let peer = try house.welcome()
        #expect(house.trust.peers.map(\.id) == [peer.id])
        guest.session.disconnect(house.host.id)
        try house.run(.seconds(1))
        #expect(house.trust.peers.map(\.id) == [peer.id])
    }

    @Test func `gets a hello that offers only what guests may use`() throws {
        let (house, guest) = try GuestHouse.withGuest {
            $0.layers += [Calls()]
            $0.datagrams = true
        }
        let seen = guest.link(to: house.host.id)?.machine.peerHello
        let hello = try #require(seen)
        #expect(!hello.hasDatagrams && hello.delegation == nil && !hello.acceptsDelegations)
        for purpose in StreamPurpose.allCases where !purpose.isForGuests {
            #expect(hello.streams?.accept(purpose) == false)
        }
        // Peers get all of it.
        let peer = try house.welcome()
        let seenByPeer = peer.link(to: house.host.id)?.machine.peerHello
        let full = try #require(seenByPeer)
        #expect(full.hasDatagrams && full.streams?.accept(.calls) == true)
    }

    // MARK: Who it is

    @Test func `that says another PeerID than the transport has found is cut off`() throws {
        let house = try GuestHouse()
        let guest = house.visit(as: Identity.ephemeral(seed: 77).peerID)
        try house.enter(guest)
        #expect(guest.failure.map { "\($0)".contains("another PeerID") } == true, "\(guest.outcomes)")
        #expect(house.host.events.allSatisfy { $0.changedPeer == nil })
        #expect(house.host.session.inspection.peers.isEmpty && house.host.session.inspection.links == 0)
    }

    @Test func `cannot take the place of a peer that is connected`() throws {
        let house = try GuestHouse()
        let peer = try house.welcome()
        // The guest has the peer's key pair, and says hello as the peer. The desk has given it another PeerID.
        let guest = house.visit(identity: .ephemeral(seed: 2), as: Identity.ephemeral(seed: 77).peerID)
        #expect(guest.id == peer.id)
        try house.enter(guest)
        #expect(house.host.state(of: peer.id) == .connected)
        #expect(house.host.peer(peer.id)?.trust != .guest)
    }

    @Test func `acts for no other identity, whatever its hello says`() throws {
        let house = try GuestHouse()
        let guest = house.visit()
        guest.machine.hello.delegation = Self.delegation
        #expect(Self.delegation != nil)
        try house.enter(guest)
        #expect(house.host.machine.peers[guest.id]?.identity.current == guest.id)
        #expect(house.host.peer(guest.id)?.trust == .guest)
    }

    // MARK: Pairing

    @Test func `cannot be paired by the session`() throws {
        let (house, guest) = try GuestHouse.withGuest { $0.acceptsPairing = true }
        house.host.pair(with: guest)
        try house.run(.seconds(1))
        let error = try #require(house.host.failure)
        #expect(error.stage == .pairing && "\(error.cause)".contains("guest"))
        #expect(house.host.state(of: guest.id) == .connected && !house.trust.isPaired(guest.id))
    }

    @Test func `cannot be paired while it is away`() throws {
        let (house, guest) = try GuestHouse.withGuest { $0.acceptsPairing = true }
        guest.faults.block(.all)
        house.desk.cut(guest.id)
        try house.run(.seconds(1))
        #expect(house.host.state(of: guest.id) == .reconnecting)
        house.host.pair(with: guest)
        try house.run(.milliseconds(1))
        #expect(house.host.outcomes.count == 1)
    }

    @Test(arguments: [false, true])
    func `that asks to be paired is cut off, and no person is asked`(acts: Bool) throws {
        let (house, guest) = try GuestHouse.withGuest { $0.acceptsPairing = true }
        // A session that acts for an identity refuses some pairings with other words.
        if acts { house.host.machine.hello.delegation = Self.delegation }
        let value = try #require(PairingValue([UInt8](repeating: 1, count: 32)))
        let link = try #require(guest.link(to: house.host.id))
        link.machine.send(.commitment(value))
        guest.machine.markDirty(link)
        guest.session.driver.flushSoon()
        try house.run(.seconds(1))
        #expect(house.host.lastCause(of: guest.id)?.cause.isViolation == true)
        #expect(house.host.codes.isEmpty && house.host.pairingEnds.isEmpty && house.host.pairedPeers.isEmpty)
    }

    // MARK: Streams

    @Test(arguments: [.relay, .calls, .actors, .forward] as [StreamPurpose])
    func `opens no stream that reaches beyond the session's program`(purpose: StreamPurpose) throws {
        let taker = StreamTaker([.relay, .calls, .actors, .forward, .files])
        let (house, guest) = try GuestHouse.withGuest { $0.layers += [taker] }
        // Its own session refuses to open one.
        #expect(throws: NighError.self) { try guest.openStream("a", for: purpose, to: house.host.id) }
        try guest.force(
            .streamControl, StreamControl.open(name: "a", for: purpose).payload(for: 1), to: house.host.id)
        try house.run(.seconds(1))
        #expect(house.host.lastCause(of: guest.id)?.cause.isViolation == true)
        #expect(taker.taken == [])
    }

    @Test func `opens streams for the program and for files`() throws {
        let taker = StreamTaker([.files])
        let (house, guest) = try GuestHouse.withGuest { $0.layers += [taker] }
        for purpose in [.program, .files] as [StreamPurpose] {
            guest.session.openStream(named: "a", to: house.host.id, for: purpose) { _ in }
        }
        try house.run(.seconds(1))
        #expect(taker.taken == [.files] && house.host.streams.count == 1)
        #expect(house.host.state(of: guest.id) == .connected)
    }

    // MARK: Links

    @Test func `resumes its conversation after a cut, and every message arrives exactly once`() throws {
        let (house, guest) = try GuestHouse.withGuest()
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
        #expect(house.host.texts == sent && guest.texts == sent && house.desk.pipeCount == 6)
        #expect(house.host.peer(guest.id)?.trust == .guest)
    }

    @Test func `that loads its page again begins a new conversation, and is the same guest`() throws {
        let (house, first) = try GuestHouse.withGuest()
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
        #expect(meetings == 2 && house.host.endings.count == 1)
        #expect(house.host.peer(second.id)?.trust == .guest)
    }

    @Test func `that stays away is given up after the 5 minutes of its transport`() throws {
        let (house, guest) = try GuestHouse.withGuest()
        guest.session.crash()
        house.desk.cut(guest.id)
        try house.run(.seconds(4 * 60 + 50))
        #expect(house.host.state(of: guest.id) == .reconnecting)
        try house.run(.seconds(20))
        #expect(house.host.state(of: guest.id) != .reconnecting)
    }

    @Test(arguments: [false, true])
    func `that is revoked is sent away, and the session does not wait for it`(isAway: Bool) throws {
        let (house, guest) = try GuestHouse.withGuest()
        if isAway {
            guest.faults.block(.all)
            house.desk.cut(guest.id)
            try house.run(.seconds(1))
        }
        house.host.session.revokeGuest(guest.id)
        try house.run(.milliseconds(1))
        #expect(house.desk.revoked == [guest.id] && house.host.endings.count == 1)
    }

    @Test func `whose invitation waits may be revoked`() throws {
        let house = try GuestHouse()
        house.host.reaction = nil
        let guest = house.visit()
        try house.enter(guest)
        #expect(house.host.invitations.count == 1)
        house.host.session.revokeGuest(guest.id)
        try house.run(.milliseconds(1))
        #expect(house.host.endedInvitations.count == 1)
        try house.run(.seconds(1))
    }

    @Test func `is the only one that can be revoked`() throws {
        let house = try GuestHouse()
        let peer = try house.welcome()
        house.host.session.revokeGuest(peer.id)
        try house.run(.seconds(1))
        #expect(house.host.state(of: peer.id) == .connected && house.host.endings == [])
    }

    // MARK: Plaintext

    @Test func `is the only one that comes in without encryption`() throws {
        let house = try GuestHouse()
        let plain = house.join("Plain") { $0.security = .none }
        plain.invite(at: TransportAddress(scheme: "memory", value: "Host"))
        try house.run(.seconds(5))
        #expect(plain.failure != nil, "a peer without encryption was let in: \(plain.outcomes)")
        #expect(!house.host.session.inspection.peers.contains { $0.state.hasConversation })
    }

    @Test(arguments: [false, true])
    func `is let in only by a session that admits guests without encryption`(wraps: Bool) throws {
        let error = try #require(Self.refusal(wraps: wraps) { $0.admitsUnencryptedGuests = false })
        #expect(error.stage == .configuring && error.transport == GuestDesk.schemeName)
        #expect("\(error)".contains("encryption"))
        #expect(error.advice?.contains("admitsUnencryptedGuests") == true)
    }

    @Test(arguments: [false, true])
    func `is not let in by a session that talks to paired peers only`(wraps: Bool) throws {
        let error = try #require(
            Self.refusal(wraps: wraps) {
                $0.admitsUnencryptedGuests = true
                $0.security = .paired
            })
        #expect(error.stage == .configuring && "\(error)".contains("paired"))
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
