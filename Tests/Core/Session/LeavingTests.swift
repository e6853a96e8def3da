import NighMemory
import NighTestKit
import Testing
import Worlds

@testable import NighCore

/// Tests how a session leaves a peer, and how it leaves all of them when it closes.
@Suite struct LeavingTests {
    private let network = SimulatedNetwork()

    @Test func `Messages sent before leaving arrive`() throws {
        let (puma, lynx) = try network.connectedPair(plan: try FaultPlan(parsing: "delay=50ms,rate=256k"))
        for number in 0..<200 {
            try puma.session.trySend([UInt8](repeating: UInt8(number), count: 2_000), to: lynx.id)
        }
        puma.disconnect(lynx)
        #expect(throws: NighError.self) { try puma.session.trySend([1], to: lynx.id) }
        try network.run(for: .seconds(6))
        #expect(lynx.messages.count == 200 && puma.outcomes.last == .success(lynx.id))
        #expect(puma.states(of: lynx.id).suffix(2) == [.disconnected, .available])
        #expect(lynx.states(of: puma.id).suffix(2) == [.disconnected, .available])
        #expect(lynx.endings == [.peerLeft] && puma.endings == [.left])
    }

    @Test func `Leaving a peer that does not read ends in bounded time with an error`() throws {
        let (puma, lynx) = try network.connectedPair(reading: .inbox)
        for _ in 0..<40 { try? puma.session.trySend([UInt8](repeating: 1, count: 30_000), to: lynx.id) }
        try network.run(for: .seconds(1))
        puma.disconnect(lynx)
        try network.run(for: .seconds(4))
        #expect(puma.state(of: lynx.id) == .connected)
        try network.run(for: .seconds(2))
        #expect(puma.failure?.description.contains("not acknowledged") == true)
        #expect(puma.state(of: lynx.id) == .available && lynx.state(of: puma.id) == .available)
    }

    /// By itself, the other side may delay an acknowledgement by 100 ms. The side that leaves asks for it.
    @Test func `Leaving does not wait for a delayed acknowledgement`() throws {
        let (puma, lynx) = try network.connectedPair()
        try puma.session.trySend(Array("last words".utf8), to: lynx.id)
        puma.disconnect(lynx)
        try network.run(for: .milliseconds(20))
        #expect(puma.outcomes.last == .success(lynx.id) && puma.state(of: lynx.id) == .available)
        #expect(lynx.texts == ["last words"])
    }

    @Test func `A session that leaves is told that the peer has left first, and what is lost`() throws {
        let (puma, lynx) = try network.connectedPair()
        puma.faults.stall(.all, .outgoing)
        try puma.session.trySend([UInt8](repeating: 1, count: 5_000), to: lynx.id)
        puma.disconnect(lynx)
        try network.disconnect(lynx, from: puma)
        #expect(puma.lastCause(of: lynx.id)?.cause == .peerLeft)
        #expect(puma.outcomes.count == 2 && puma.failure?.stage == .sending)
    }

    // MARK: Closing

    /// The time that a session takes to close, with `goodbye` of 200 ms and `linger` of 100 ms.
    private func closingTime(
        _ security: SessionSecurity, sending count: Int = 0,
        stalling: (SessionProbe, SessionProbe) -> Void
    ) throws -> Moment.Span {
        let (puma, lynx) = try network.connectedPair {
            $0.timings.goodbye = .milliseconds(200)
            $0.timings.linger = .milliseconds(100)
            $0.security = security
        }
        stalling(puma, lynx)
        for _ in 0..<count { try puma.session.trySend([UInt8](repeating: 1, count: 100), to: lynx.id) }
        return try time(toClose: puma.session, on: network.loop)
    }

    private func time(toClose session: Session, on loop: VirtualEventLoop) throws -> Moment.Span {
        let begun = loop.now
        nonisolated(unsafe) var closed: Moment?  // the loop is virtual: one thread
        session.close { closed = loop.now }
        try loop.run(for: .seconds(5))
        return try #require(closed) - begun
    }

    @Test(arguments: [SessionSecurity.encrypted, .none])
    func `A session waits for a goodbye that is still in the process, up to its time limit`(
        security: SessionSecurity
    ) throws {
        let idle = try closingTime(security) { puma, _ in puma.faults.stall(.all, .outgoing) }
        #expect(idle == .milliseconds(200))
        // The messages first get the time that they have in any case.
        let busy = try closingTime(security, sending: 10) { puma, _ in puma.faults.stall(.all, .outgoing) }
        #expect(busy == .milliseconds(300))
    }

    @Test(arguments: [SessionSecurity.encrypted, .none])
    func `A session does not wait for a goodbye that has left the process`(security: SessionSecurity) throws {
        let time = try closingTime(security) { _, lynx in lynx.faults.stall(.all, .incoming) }
        #expect(time <= .milliseconds(5))
    }

    @Test func `A session waits for a pipe that never drains no longer than for the goodbye`() throws {
        let other = try ScriptedPeer { $0.timings.goodbye = .milliseconds(200) }
        try other.open()
        #expect(try time(toClose: other.session, on: other.loop) == .milliseconds(200))
    }

    @Test func `A session ends in the same turn in which its last pipe is drained`() throws {
        let other = try ScriptedPeer()
        try other.open()
        let first = other.pipe
        try other.open()
        nonisolated(unsafe) var isClosed = false  // the loop is virtual: one thread
        other.session.close { isClosed = true }
        try other.loop.runQueued()
        #expect(other.transport.calls.count { $0 == "close afterWriting" } == 2)
        first.handler?.pipeDrained(first)
        #expect(!isClosed)
        other.pipe.handler?.pipeDrained(other.pipe)
        #expect(isClosed)
    }

    @Test func `Closing a session leaves every peer and stops callbacks`() throws {
        let (puma, lynx) = try network.connectedPair()
        try puma.session.trySend(Array("last words".utf8), to: lynx.id)
        _ = try time(toClose: puma.session, on: network.loop)
        #expect(lynx.texts == ["last words"] && lynx.endings == [.peerLeft])
        #expect(lynx.state(of: puma.id) == .unavailable)
        let last = try #require(puma.events.last)
        #expect("\(last)" == "the session is closed")
        let count = puma.events.count
        lynx.invite(at: puma.address)
        puma.invite(lynx)
        try network.run(for: .seconds(5))
        #expect(puma.events.count == count)
    }

    /// Works in every order of the three PeerIDs, and although the peer that lost its link cannot be told anything.
    @Test(arguments: 0..<3)
    func `Closing answers pending invitations in both directions`(turn: Int) throws {
        let puma = network.join("Puma", accepting: false)
        let others = (0..<3).map { network.join("Lynx \($0)", accepting: false) }.sorted { $0.id < $1.id }
        let (connected, inviting, invited) = (others[turn], others[(turn + 1) % 3], others[(turn + 2) % 3])
        try network.run(for: .seconds(1))
        try network.invite(connected, from: puma)
        try #require(connected.invitations.first).accept()
        inviting.invite(puma)
        try network.invite(invited, from: puma)
        #expect(puma.state(of: connected.id) == .connected && puma.state(of: invited.id) == .connecting)
        connected.faults.block()
        connected.faults.cut()
        try network.run(for: .milliseconds(10))
        #expect(puma.state(of: connected.id) == .reconnecting)
        puma.session.close {}
        try network.run(for: .seconds(1))
        #expect(inviting.failure?.cause == .declined("", retryAfter: .zero))
        #expect(puma.failure?.stage == .inviting && puma.failure?.cause == .cancelled)
        #expect(puma.states(of: invited.id) == [.available, .connecting, .available])
        #expect(invited.endedInvitations.map(\.cause) == [.cancelled])
        #expect(puma.lastCause(of: connected.id)?.cause == .left)
    }
}

/// Tests what is left of a session that has ended, and of what it held.
@Suite struct SessionLifetimeTests {
    private let network = SimulatedNetwork()

    /// Two connected sessions, of which the network does not hold the second.
    private func connectedPair(
        onEvent: @escaping @Sendable (SessionEvent) -> Void = { _ in },
        onMessage: @escaping MessageHandler = { _, _ in }
    ) throws -> (puma: SessionProbe, session: Session) {
        let puma = network.join("Puma")
        let session = Session(
            SessionConfiguration(service: "test", name: DisplayName(fitting: "Lynx")),
            identity: .ephemeral(seed: 99), transports: [MemoryTransport(hub: network.hub())],
            loop: network.loop)
        session.start(onEvent: onEvent, onMessage: onMessage)
        try network.run(for: .seconds(1))
        session.invite(puma.id) { _ in }
        try network.run(for: .seconds(1))
        #expect(puma.state(of: session.id) == .connected)
        return (puma, session)
    }

    /// How a session ends in a test.
    enum End: CaseIterable {
        case isClosed
        case isLetGo
        /// It ends before it has looked at a message that another thread has sent.
        case crashesWithAMessage
    }

    @Test(arguments: End.allCases)
    func `A session that has met peers leaves nothing when it ends and nobody holds it`(_ end: End) throws {
        weak var reference: SessionReference?
        weak var notifier: PortNotifier?
        weak var driver: SessionDriver?
        do {
            let (puma, session) = try connectedPair()
            (reference, notifier, driver) = (
                session.reference, session.reference.portNotifier, session.driver
            )
            switch end {
            case .isClosed: session.close {}
            case .isLetGo: break
            case .crashesWithAMessage:
                OtherThread.run { try? session.trySend([1], to: puma.id) }
                session.crash()
            }
            if end != .isLetGo { try network.run(for: .seconds(10)) }
            withExtendedLifetime(session) { #expect(driver != nil) }
        }
        try network.run(for: .seconds(10))
        #expect(reference == nil && notifier == nil && driver == nil)
    }

    @Test func `A session that is let go leaves its peers and reports nothing more`() throws {
        nonisolated(unsafe) var reportCount = 0  // the loop is virtual: one thread
        var session: Session?
        let puma: SessionProbe
        (puma, session) = try connectedPair(
            onEvent: { _ in reportCount += 1 }, onMessage: { _, _ in reportCount += 1 })
        let (id, before) = (try #require(session?.id), reportCount)
        session = nil
        try puma.session.trySend([1], to: id)
        try network.run(for: .seconds(20))
        #expect(reportCount == before && puma.endings == [.peerLeft] && puma.state(of: id) == .unavailable)
    }

    @Test func `A closed session keeps neither what its handlers hold nor its conversations`() throws {
        final class Program: Sendable {}
        weak let (events, messages): (Program?, Program?)
        let puma: SessionProbe
        let session: Session
        do {
            let (forEvents, forMessages) = (Program(), Program())
            (events, messages) = (forEvents, forMessages)
            (puma, session) = try connectedPair(
                onEvent: { _ in withExtendedLifetime(forEvents) {} },
                onMessage: { _, _ in withExtendedLifetime(forMessages) {} })
        }
        try session.trySend([1], to: puma.id)
        weak let conversation = session.driver.machine.peers[puma.id]?.conversation
        #expect(events != nil && messages != nil && conversation != nil)
        session.close {}
        try network.run(for: .seconds(5))
        #expect(events == nil && messages == nil && conversation == nil)
    }

    @Test func `A closed session no longer follows its trust store`() throws {
        let trust = TrustStore.ephemeral()
        let puma = network.join("Puma", trust: trust)
        try network.run(for: .seconds(1))
        trust.pair(Identity.ephemeral(seed: 90).peerID, name: DisplayName(fitting: "Lynx"))
        #expect(network.loop.pending.work == 1)
        puma.session.close {}
        try network.run(for: .seconds(10))
        trust.pair(Identity.ephemeral(seed: 91).peerID, name: DisplayName(fitting: "Serval"))
        #expect(network.loop.pending.work == 0)
    }
}

/// Tests that every call of a closed session fails with `closed`.
@Suite struct ClosedSessionTests {
    private let network = SimulatedNetwork()

    /// Expects that each call that sends fails with `closed`.
    private func expectClosed(_ session: Session, to peer: PeerID) throws {
        let bytes = ByteSlice(Array("late".utf8))
        let calls: [(String, @Sendable () async throws -> Void)] = [
            ("trySend", { try session.trySend(bytes, to: peer) }),
            ("trySend, unreliable", { try session.trySend(bytes, to: peer, .unreliable) }),
            ("trySend to several", { try session.trySend(bytes, to: [peer]) }),
            ("trySend to none", { try session.trySend(bytes, to: []) }),
            ("send", { try await session.send(bytes, to: peer) }),
            ("send to several", { try await session.send(bytes: bytes.bytes, to: [session.peer(peer)]) }),
            ("broadcast", { try await session.broadcast(bytes: bytes.bytes) }),
            ("openStream", { _ = try await session.peer(peer).openStream(named: "late") }),
        ]
        nonisolated(unsafe) var failed: [String] = []  // the loop is virtual: one thread
        for (name, call) in calls {
            Task(executorPreference: network.loop) {
                do { try await call() } catch {
                    let cause = (error as? NighError ?? (error as? PartialSendError)?.reason)?.cause
                    if cause == .closed { failed.append(name) }
                }
            }
        }
        try network.run(for: .milliseconds(1))
        #expect(failed.sorted() == calls.map(\.0).sorted())
    }

    @Test(arguments: [false, true])
    func `Every call that sends fails with closed`(whileLastMessagesAreDelivered: Bool) throws {
        let (puma, lynx) = try network.connectedPair()
        if whileLastMessagesAreDelivered {
            lynx.faults.stall()
            try puma.session.trySend([1], to: lynx.id)
        }
        puma.session.close {}
        try network.run(for: whileLastMessagesAreDelivered ? .milliseconds(1) : .seconds(2))
        #expect((puma.state(of: lynx.id) == .connected) == whileLastMessagesAreDelivered)
        try expectClosed(puma.session, to: lynx.id)
    }

    @Test func `A message for a conversation that ended with its session is refused`() throws {
        let (puma, lynx) = try network.connectedPair()
        try puma.session.trySend([1], to: lynx.id)
        puma.session.crash()
        for _ in 0..<2 {
            let error = #expect(throws: NighError.self) { try puma.session.trySend([1], to: lynx.id) }
            #expect(error?.cause == .closed)
        }
    }

    @Test func `Every other call fails with closed`() throws {
        let (puma, lynx) = try network.connectedPair()
        puma.session.close {}
        try network.run(for: .seconds(2))
        puma.outcomes = []
        puma.invite(lynx)
        puma.invite(at: lynx.address)
        puma.disconnect(lynx)
        puma.pair(with: lynx)
        let ping = Answer<Duration>()
        puma.session.ping(lynx.id, completion: ping.take)
        try network.run(for: .milliseconds(1))
        let causes = puma.outcomes.map { outcome -> NighError.Cause? in
            if case .failure(let error) = outcome { error.cause } else { nil }
        }
        #expect(causes == [.closed, .closed, .closed, .closed] && puma.failure?.stage == .pairing)
        #expect(throws: NighError(.pinging, .closed)) { try ping.result?.get() }
        // "Invite the peer" would be the wrong advice.
        #expect(throws: NighError(.sending, .closed, peer: lynx.id.short)) {
            try puma.session.directory.port(of: lynx.id)
        }
    }
}
