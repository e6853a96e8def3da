import NighMemory
import NighTestKit
import Testing
import Worlds

@testable import NighCore

/// Tests what goes wrong only when sessions meet more than once.
@Suite struct LongLivedTests {
    /// The guest does not browse, and forgets the host each time. A host with the role `peer` remembers the guest.
    @Test(arguments: [SessionRole.server, .peer]) func aPeerForgottenInBetweenCanInviteAgain(
        role: SessionRole
    ) throws {
        let place = Neighbourhood()
        let host = place.join("Host", role: role)
        let guest = place.join("Guest", role: .server)
        try place.run(.seconds(1))
        for _ in 0..<5 {
            guest.session.invite(at: host.address) { guest.outcomes.append($0) }
            try place.run(.seconds(1))
            guest.session.disconnect(host.id)
            try place.run(.seconds(1))
            #expect(guest.session.driver.machine.peers.isEmpty)
            #expect(host.state(of: guest.id) == (role == .peer ? .available : .unavailable))
        }
        #expect(guest.outcomes == [Result<PeerID, NighError>](repeating: .success(host.id), count: 5))
    }

    @Test func reconnectingGivesAPeerNoExtraRoomInTheInbox() throws {
        let place = Neighbourhood()
        let reader = place.join("Reader", reading: .inbox)
        let writer = place.join("Writer") { $0.timings.linger = .milliseconds(500) }
        try place.run(.seconds(1))
        let window = SessionLimits().receiveWindow
        for _ in 0..<6 {
            writer.session.invite(reader.id) { _ in }
            try place.run(.seconds(1))
            while (try? writer.session.trySend([UInt8](repeating: 1, count: 8_000), to: reader.id)) != nil {}
            try place.run(.seconds(1))
            writer.session.disconnect(reader.id)
            try place.run(.seconds(2))
        }
        var unread = 0
        while let message = reader.session.messages.poll() { unread += message.payload.count }
        #expect(unread > window / 2)
        #expect(unread <= window + 16_384)

        // Once everything is read, there is room again.
        try place.run(.seconds(1))
        writer.session.invite(reader.id) { _ in }
        try place.run(.seconds(1))
        try writer.session.trySend(Array("again".utf8), to: reader.id)
        try place.run(.seconds(1))
        #expect(reader.session.messages.poll()?.bytes == Array("again".utf8))
    }

    /// How a session ends in a test.
    enum End: CaseIterable {
        case isClosed
        case isLetGo
        /// It ends before it has looked at a message that another thread has sent.
        case crashesWithAMessage
    }

    @Test(
        "A session that has met peers leaves nothing when it ends and nobody holds it",
        arguments: End.allCases)
    func nothingIsLeft(_ end: End) throws {
        weak var reference: SessionReference?
        weak var notifier: PortNotifier?
        let hub = MemoryHub()
        let loop = VirtualEventLoop()
        func makeSession(_ seed: UInt64) -> Session {
            let session = Session(
                SessionConfiguration(service: "test", name: DisplayName(fitting: "\(seed)")),
                identity: .ephemeral(seed: seed), transports: [MemoryTransport(hub: hub)], loop: loop)
            session.start(onEvent: { event in
                if case .invited(let invitation) = event { invitation.accept() }
            })
            return session
        }
        let other = makeSession(1)
        do {
            let session = makeSession(2)
            reference = session.reference
            notifier = session.reference.portNotifier
            try loop.run(for: .seconds(1))
            session.invite(other.id) { _ in }
            try loop.run(for: .seconds(1))
            #expect(session.connectedPeerIDs == [other.id])
            switch end {
            case .isClosed: session.close {}
            case .isLetGo: break
            case .crashesWithAMessage:
                OtherThread.run { try? session.trySend([1], to: other.id) }
                session.crash()
            }
            if end != .isLetGo { try loop.run(for: .seconds(10)) }
        }
        try loop.run(for: .seconds(10))
        #expect(reference == nil && notifier == nil)
    }

    /// An occasional transfer must not keep its memory forever.
    @Test func theMemoryOfALargeMessageIsReleasedWhenNoOtherFollows() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        try puma.session.trySend([UInt8](repeating: 1, count: 300_000), to: lynx.id)
        try place.run(.seconds(1))
        let chunks = [puma, lynx].map(\.session.driver.machine.largeChunks)
        #expect(chunks.map(\.extent.count) == [1, 1])
        try place.run(.seconds(10))
        #expect(chunks.map(\.extent.count) == [0, 0])
    }

    /// A closed pipe is kept only until it has sent its last bytes, because a session that closes waits for them.
    @Test func aClosedPipeIsReleasedOnceItHasSentItsLastBytes() throws {
        let place = Neighbourhood()
        var plan = FaultPlan.none
        plan.delay = .milliseconds(50)
        nonisolated(unsafe) var pipes: [Weak] = []  // the loop is virtual: one thread
        let puma = place.join(
            "Puma", plan: plan,
            through: { transport in
                RelabelledTransport(transport, scheme: "memory", priority: 0) { pipe in
                    let watched = WatchedPipe(pipe)
                    pipes.append(Weak(pipe: watched))
                    return watched
                }
            })
        let lynx = place.join("Lynx")
        try place.run(.seconds(1))
        for _ in 0..<5 {
            puma.invite(lynx)
            try place.run(.seconds(1))
            puma.session.disconnect(lynx.id)
            try place.run(.seconds(1))
        }
        #expect(pipes.count == 5)
        #expect(pipes.count { $0.pipe != nil } <= 1)
    }

    private struct Weak {
        weak var pipe: WatchedPipe?
    }

    @Test func aPingFailsWithItsLinkAndNotLater() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        puma.faults.stall()
        nonisolated(unsafe) var outcome: Result<Duration, NighError>?  // the loop is virtual: one thread
        puma.session.ping(lynx.id) { outcome = $0 }
        try place.run(.milliseconds(100))
        #expect(outcome == nil)
        puma.faults.cut()
        try place.run(.milliseconds(100))
        guard case .failure(let error)? = outcome else {
            Issue.record("the ping was not failed")
            return
        }
        #expect(error.cause == .linkLost)
    }

    @Test func pingsBeyondTheLimitAreRefused() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        nonisolated(unsafe) var refused = 0  // the loop is virtual: one thread
        nonisolated(unsafe) var answered = 0  // likewise
        for _ in 0..<100 {
            puma.session.ping(lynx.id) { if case .success = $0 { answered += 1 } else { refused += 1 } }
        }
        try place.run(.seconds(1))
        #expect(refused == 100 - SessionLimits().pendingPings)
        #expect(answered == SessionLimits().pendingPings)
    }

    @Test func cancellingATaskCancelsItsInvitation() async throws {
        let hub = MemoryHub()
        let loop = ThreadEventLoop()
        var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: "Puma"))
        configuration.timings = .patient
        let puma = Session(
            configuration, identity: .ephemeral(), transports: [MemoryTransport(hub: hub)], loop: loop)
        let silent = hub.makeSilentAddress()
        puma.start()
        let call = Task { () -> NighError? in
            do throws(NighError) {
                _ = try await puma.invite(at: silent, timeout: .seconds(600))
                return nil
            } catch {
                return error
            }
        }
        while await puma.statistics().dials == 0 { await Task.yield() }
        call.cancel()
        #expect(await call.value?.cause == .cancelled)
        await puma.close()
    }

    @Test func twoHundredDoubleInvitationsEndWithOneLinkEach() throws {
        for round in 0..<200 {
            var generator = SeededGenerator(seed: UInt64(round))
            let place = Neighbourhood()
            var plan = FaultPlan()
            plan.delay = .milliseconds(Int64.random(in: 0...30, using: &generator))
            plan.jitter = .milliseconds(Int64.random(in: 0...10, using: &generator))
            plan.seed = generator.next()
            let puma = place.join("Puma", seed: generator.next(), plan: plan)
            let lynx = place.join("Lynx", seed: generator.next(), plan: plan)
            try place.run(.milliseconds(200))
            puma.session.invite(lynx.id) { puma.outcomes.append($0) }
            try place.run(.microseconds(Int64.random(in: 0...80_000, using: &generator)))
            lynx.session.invite(puma.id) { lynx.outcomes.append($0) }
            try place.run(.seconds(3))
            try #require(puma.outcomes == [.success(lynx.id)], "round \(round)")
            try #require(lynx.outcomes == [.success(puma.id)], "round \(round)")
            try #require(puma.session.driver.machine.links.count == 1, "round \(round)")
            try #require(lynx.session.driver.machine.links.count == 1, "round \(round)")
            try #require(puma.states(of: lynx.id) == [.available, .connecting, .connected], "round \(round)")
            try #require(lynx.states(of: puma.id) == [.available, .connecting, .connected], "round \(round)")
        }
    }

    @Test func fiftyKillsAndRestartsLeaveOnePeerAndNoGhost() throws {
        let place = Neighbourhood()
        let host = place.join("Host", role: .server)
        let seed: UInt64 = 4_711
        let id = Identity.ephemeral(seed: seed).peerID
        for life in 0..<50 {
            let guest = place.join("Guest", role: .peer, seed: seed)
            try place.run(.seconds(1))
            guest.invite(host)
            try place.run(.seconds(1))
            try #require(guest.outcomes == [.success(host.id)], "life \(life)")
            try guest.session.trySend(Array("life \(life)".utf8), to: host.id)
            try place.run(.milliseconds(100))
            try #require(host.texts.last == "life \(life)")
            try #require(host.session.driver.machine.peers.keys.filter { $0 == id }.count == 1)
            try #require(host.session.connectedPeerIDs == [id])
            try #require(host.session.driver.machine.links.count == 1, "life \(life)")
            // Killed: no goodbye leaves any more, whatever the process still tries.
            guest.faults.block()
            if life % 2 == 0 { guest.faults.cut() }
            guest.session.close {}
            if life % 3 == 0 { try place.run(.seconds(20)) }
        }
        try place.run(.seconds(60))
        #expect(host.session.driver.machine.peers.isEmpty)
        #expect(host.session.driver.machine.links.isEmpty)
        #expect(host.texts == (0..<50).map { "life \($0)" })
    }
}
