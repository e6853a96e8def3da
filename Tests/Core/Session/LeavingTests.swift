import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite struct LeavingTests {
    @Test func messagesSentBeforeLeavingArrive() throws {
        let place = Neighbourhood()
        var plan = FaultPlan()
        plan.delay = .milliseconds(50)
        plan.bytesPerSecond = 256 << 10
        let (puma, lynx) = try place.pair(plan: plan)
        for number in 0..<200 {
            try puma.session.trySend([UInt8](repeating: UInt8(number), count: 2_000), to: lynx.id)
        }
        puma.session.disconnect(lynx.id) { puma.outcomes.append($0) }
        #expect(throws: NighError.self) { try puma.session.trySend([1], to: lynx.id) }
        try place.run(.seconds(6))
        #expect(lynx.messages.count == 200)
        #expect(puma.outcomes.last == .success(lynx.id))
        #expect(puma.states(of: lynx.id).suffix(2) == [.disconnected, .available])
        #expect(lynx.states(of: puma.id).suffix(2) == [.disconnected, .available])
        #expect(lynx.lastCause(of: puma.id)?.cause == .peerLeft)
        #expect(puma.lastCause(of: lynx.id)?.cause == .left)
    }

    @Test func leavingAPeerThatDoesNotReadEndsInBoundedTimeWithAnError() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair(.inbox)
        for _ in 0..<40 { try? puma.session.trySend([UInt8](repeating: 1, count: 30_000), to: lynx.id) }
        try place.run(.seconds(1))
        puma.session.disconnect(lynx.id) { puma.outcomes.append($0) }
        try place.run(.seconds(4))
        #expect(puma.state(of: lynx.id) == .connected)
        try place.run(.seconds(2))
        guard case .failure(let error)? = puma.outcomes.last else {
            Issue.record("lost messages were not told")
            return
        }
        #expect(error.description.contains("not acknowledged"))
        #expect(puma.state(of: lynx.id) == .available)
        #expect(lynx.state(of: puma.id) == .available)
    }

    /// By itself, the other side may delay an acknowledgement by 100 ms. The side that leaves asks for it.
    @Test func leavingDoesNotWaitForADelayedAcknowledgement() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        try puma.session.trySend(Array("last words".utf8), to: lynx.id)
        puma.session.disconnect(lynx.id) { puma.outcomes.append($0) }
        try place.run(.milliseconds(20))
        #expect(puma.outcomes.last == .success(lynx.id))
        #expect(puma.state(of: lynx.id) == .available)
        #expect(lynx.texts == ["last words"])
    }

    /// The time that `puma` takes to close, with `goodbye` of 200 ms and `linger` of 100 ms.
    private func closingTime(
        _ security: SessionSecurity, sending count: Int = 0,
        stalling: (SessionProbe, SessionProbe) -> Void
    ) throws -> Moment.Span? {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair {
            $0.timings.goodbye = .milliseconds(200)
            $0.timings.linger = .milliseconds(100)
            $0.security = security
        }
        stalling(puma, lynx)
        for _ in 0..<count { try puma.session.trySend([UInt8](repeating: 1, count: 100), to: lynx.id) }
        let (loop, begun) = (place.loop, place.loop.now)
        nonisolated(unsafe) var closed: Moment?  // the loop is virtual: one thread
        puma.session.close { closed = loop.now }
        try place.run(.seconds(5))
        return closed.map { $0 - begun }
    }

    @Test(
        "A session waits for a goodbye that is still in the process, up to its time limit",
        arguments: [SessionSecurity.encrypted, .none])
    func goodbyeHeldUp(security: SessionSecurity) throws {
        let idle = try closingTime(security) { puma, _ in puma.faults.stall(.all, .outgoing) }
        #expect(idle == .milliseconds(200))
        // The messages first get the time that they have in any case.
        let busy = try closingTime(security, sending: 10) { puma, _ in puma.faults.stall(.all, .outgoing) }
        #expect(busy == .milliseconds(300))
    }

    @Test(
        "A session does not wait for a goodbye that has left the process, whatever delays it afterwards",
        arguments: [SessionSecurity.encrypted, .none])
    func goodbyeOnItsWay(security: SessionSecurity) throws {
        let time = try #require(
            try closingTime(security) { _, lynx in lynx.faults.stall(.all, .incoming) })
        #expect(time <= .milliseconds(5))
    }

    @Test("A session ends in the same turn in which its last pipe is drained")
    func lastPipeIsDrained() throws {
        let other = try ScriptedPeer()
        try other.open()
        let first = other.pipe
        try other.open()
        nonisolated(unsafe) var isClosed = false  // the loop is virtual: one thread
        other.session.close { isClosed = true }
        try other.loop.runQueued()
        #expect(other.transport.calls.filter { $0 == "close afterWriting" }.count == 2)
        first.handler?.pipeDrained(first)
        #expect(!isClosed)
        other.pipe.handler?.pipeDrained(other.pipe)
        #expect(isClosed)
    }

    @Test("A session waits for a pipe that never drains no longer than the goodbye's time limit")
    func neverDrained() throws {
        let other = try ScriptedPeer { $0.timings.goodbye = .milliseconds(200) }
        try other.open()
        nonisolated(unsafe) var closed: Moment?  // the loop is virtual: one thread
        let (loop, begun) = (other.loop, other.loop.now)
        other.session.close { closed = loop.now }
        try other.run(.seconds(5))
        #expect(closed == begun + .milliseconds(200))
    }

    @Test func aReleasedSessionReportsNothingMore() throws {
        let place = Neighbourhood()
        let lynx = place.join("Lynx")
        nonisolated(unsafe) var reportCount = 0  // the loop is virtual: one thread
        var session: Session? = Session(
            SessionConfiguration(service: "test", name: DisplayName(fitting: "Puma")), identity: .ephemeral(),
            transports: [MemoryTransport(hub: place.hub)], loop: place.loop)
        let puma = try #require(session?.id)
        session?.start(onEvent: { _ in reportCount += 1 }, onMessage: { _, _ in reportCount += 1 })
        try place.run(.seconds(1))
        session?.invite(lynx.id) { _ in }
        try place.run(.seconds(1))
        #expect(lynx.state(of: puma) == .connected)
        let before = reportCount
        session = nil
        try lynx.session.trySend([1], to: puma)
        try place.run(.seconds(20))
        #expect(reportCount == before)
        #expect(lynx.lastCause(of: puma)?.cause == .peerLeft)
    }

    @Test func closingASessionLeavesEveryPeerAndStopsCallbacks() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        try puma.session.trySend(Array("last words".utf8), to: lynx.id)
        var isClosed = false
        let mark: () -> Void = { isClosed = true }
        nonisolated(unsafe) let markClosed = mark  // called on this thread: the loop is virtual
        puma.session.close { markClosed() }
        try place.run(.seconds(1))
        #expect(isClosed)
        #expect(lynx.texts == ["last words"])
        #expect(lynx.lastCause(of: puma.id)?.cause == .peerLeft)
        #expect(lynx.state(of: puma.id) == .unavailable)
        guard case .closed? = puma.events.last else {
            Issue.record("the last event is not `closed`")
            return
        }
        let reportCount = puma.events.count
        lynx.session.invite(at: puma.address) { lynx.outcomes.append($0) }
        puma.session.invite(lynx.id) { puma.outcomes.append($0) }
        try place.run(.seconds(5))
        #expect(puma.events.count == reportCount)
        #expect(throws: NighError.self) { try puma.session.trySend([1], to: lynx.id) }
        guard case .failure(let error)? = puma.outcomes.last else { return }
        #expect(error.cause == .closed)
    }

    /// Works in every order of the three PeerIDs, and although the peer that lost its link cannot be told anything.
    @Test(arguments: 0..<3) func closingAnswersPendingInvitationsInBothDirections(turn: Int) throws {
        let place = Neighbourhood()
        let puma = place.join("Puma", accepting: false)
        let others = (0..<3).map { place.join("Lynx \($0)", accepting: false) }.sorted { $0.id < $1.id }
        let (connected, inviting, invited) = (others[turn], others[(turn + 1) % 3], others[(turn + 2) % 3])
        try place.run(.seconds(1))
        puma.invite(connected)
        try place.run(.seconds(1))
        try #require(connected.invitations.first).accept()
        inviting.invite(puma)
        puma.invite(invited)
        try place.run(.seconds(1))
        #expect(puma.state(of: connected.id) == .connected && puma.state(of: invited.id) == .connecting)
        connected.faults.block()
        connected.faults.cut()
        try place.run(.milliseconds(10))
        #expect(puma.state(of: connected.id) == .reconnecting)
        puma.session.close {}
        try place.run(.seconds(1))
        #expect(inviting.failure?.cause == .declined("", retryAfter: .zero))
        #expect(puma.failure?.stage == .inviting && puma.failure?.cause == .cancelled)
        #expect(puma.states(of: invited.id) == [.available, .connecting, .available])
        #expect(invited.endedInvitations.map(\.cause) == [.cancelled])
        #expect(puma.lastCause(of: connected.id)?.cause == .left)
    }

    @Test func anUnreferencedSessionDisappears() throws {
        let place = Neighbourhood()
        let lynx = place.join("Lynx")
        var puma: Neighbourhood.Member? = place.join("Puma")
        let id = try #require(puma?.id)
        try place.run(.seconds(1))
        puma?.session.invite(lynx.id) { _ in }
        try place.run(.seconds(1))
        #expect(lynx.state(of: id) == .connected)
        puma = nil
        try place.run(.seconds(20))
        #expect(lynx.state(of: id) == .unavailable)
    }

    @Test func aClosedSessionLetsGoOfWhatItsHandlersHold() throws {
        final class Program: Sendable {}
        let loop = VirtualEventLoop()
        let session = Session(
            SessionConfiguration(service: "test", name: DisplayName(fitting: "Puma")),
            identity: .ephemeral(seed: 1), transports: [MemoryTransport(hub: MemoryHub())], loop: loop)
        weak let (events, messages): (Program?, Program?)
        do {
            let (forEvents, forMessages) = (Program(), Program())
            (events, messages) = (forEvents, forMessages)
            session.start(
                onEvent: { _ in withExtendedLifetime(forEvents) {} },
                onMessage: { _, _ in withExtendedLifetime(forMessages) {} })
        }
        try loop.run(for: .seconds(1))
        #expect(events != nil && messages != nil)
        session.close {}
        try loop.run(for: .seconds(1))
        #expect(events == nil && messages == nil)
    }

    @Test func aClosedSessionNoLongerFollowsItsTrustStore() throws {
        let place = Neighbourhood()
        let trust = TrustStore.ephemeral()
        let puma = place.join("Puma", trust: trust)
        try place.run(.seconds(1))
        trust.pair(Identity.ephemeral(seed: 90).peerID, name: DisplayName(fitting: "Lynx"))
        #expect(place.loop.pending.work == 1)
        puma.session.close {}
        try place.run(.seconds(10))
        trust.pair(Identity.ephemeral(seed: 91).peerID, name: DisplayName(fitting: "Serval"))
        #expect(place.loop.pending.work == 0)
    }

    @Test func aClosedSessionKeepsNothingOfItsConversations() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        try puma.session.trySend([1], to: lynx.id)
        weak let conversation = puma.session.driver.machine.peers[lynx.id]?.conversation
        #expect(conversation != nil)
        puma.session.close {}
        try place.run(.seconds(5))
        #expect(conversation == nil)
    }

    @Test func aClosedSessionIsFreedWhenTheProgramLetsGoOfIt() throws {
        let loop = VirtualEventLoop()
        weak var driver: SessionDriver?
        do {
            let session = Session(
                SessionConfiguration(service: "test", name: DisplayName(fitting: "Puma")),
                identity: .ephemeral(seed: 1), transports: [MemoryTransport(hub: MemoryHub())], loop: loop)
            session.start(onEvent: { _ in }, onMessage: { _, _ in })
            try loop.run(for: .seconds(1))
            driver = session.driver
            session.close {}
            try loop.run(for: .seconds(1))
            #expect(driver != nil)
        }
        try loop.run(for: .seconds(1))
        #expect(driver == nil)
    }
}
