import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests sessions on real threads: what the virtual loop cannot show.
@Suite struct ConcurrencyTests {
    private func connectedPair(
        adjust: (inout SessionConfiguration) -> Void = { _ in }
    ) async throws -> (Session, Session) {
        let sessions = try await connected(["Puma", "Lynx"], adjust: adjust)
        return (sessions[0], sessions[1])
    }

    /// Sessions of which the first is connected to all others.
    private func connected(
        _ names: [String], adjust: (inout SessionConfiguration) -> Void
    ) async throws -> [Session] {
        let hub = MemoryHub()
        var sessions: [Session] = []
        for name in names {
            var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: name))
            configuration.timings = .patient
            adjust(&configuration)
            let session = Session(
                configuration, identity: .ephemeral(), transports: [MemoryTransport(hub: hub)],
                loop: ThreadEventLoop())
            sessions.append(session)
        }
        let (first, others) = (sessions[0], sessions.dropFirst())
        for other in others {
            other.start(onEvent: { event in
                if case .invited(let invitation) = event { invitation.accept() }
            })
        }
        first.start()
        var unseen = Set(others.map(\.id))
        for await event in first.events {
            if case .peerFound(let peer) = event { unseen.remove(peer.id) }
            if unseen.isEmpty { break }
        }
        for other in others { try await first.peer(other.id).invite(timeout: .seconds(600)) }
        return sessions
    }

    /// A pair whose first session sends until it has to wait, forever, because nobody reads. The value of the task
    /// is the error that ended the wait.
    private func pairWithAWaitingSender() async throws -> (Session, Session, Task<NighError?, Never>) {
        let (puma, lynx) = try await connectedPair(adjust: Self.makeBuffersSmall)
        return (puma, lynx, await waitingSender(from: puma, to: lynx))
    }

    private static func makeBuffersSmall(_ configuration: inout SessionConfiguration) {
        configuration.limits.sendBuffer = 32 << 10
        configuration.limits.receiveWindow = 32 << 10
        configuration.timings.linger = .milliseconds(50)
    }

    private func waitingSender(from puma: Session, to lynx: Session) async -> Task<NighError?, Never> {
        let sender = Task { () -> NighError? in
            do throws(NighError) {
                while true { try await puma.send([UInt8](repeating: 1, count: 8_000), to: lynx.id) }
            } catch {
                return error
            }
        }
        // Lynx takes no more, and what it has not taken leaves no room for another message.
        while true {
            let (here, there) = await (puma.statistics().peers[lynx.id], lynx.statistics().peers[puma.id])
            let untaken = (here?.bytesSent ?? 0) - (there?.bytesReceived ?? 0)
            if there?.bytesUnread ?? 0 >= 32 << 10, untaken >= 40_000 { return sender }
            await Task.yield()
        }
    }

    @Test func `Four tasks send and each keeps its order`() async throws {
        let (puma, lynx) = try await connectedPair()
        let each = 2_000
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    for number in 0..<each {
                        let text = "\(task) \(number)"
                        try await puma.send(Array(text.utf8), to: lynx.id)
                    }
                }
            }
            group.addTask {
                var next = [0, 0, 0, 0]
                while next != [each, each, each, each], let message = await lynx.messages.next() {
                    let parts = String(decoding: message.bytes, as: UTF8.self).split(separator: " ")
                        .compactMap { Int($0) }
                    #expect(parts[1] == next[parts[0]])
                    next[parts[0]] += 1
                }
                #expect(next == [each, each, each, each])
            }
            try await group.waitForAll()
        }
        for session in [puma, lynx] { await session.close() }
    }

    @Test func `Waiting senders get room when the reader reads and lose nothing`() async throws {
        let (puma, lynx) = try await connectedPair {
            $0.limits.sendBuffer = 64 << 10
            $0.limits.receiveWindow = 64 << 10
        }
        let count = 400
        async let sending: Void = {
            for number in 0..<count {
                try await puma.send(
                    [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 10_000), to: lynx.id)
            }
        }()
        var received = 0
        while received < count, let message = await lynx.messages.next() {
            #expect(message.bytes.first == UInt8(truncatingIfNeeded: received))
            received += 1
        }
        try await sending
        #expect(received == count)
        for session in [puma, lynx] { await session.close() }
    }

    @Test func `A cancelled sender stops waiting`() async throws {
        let (puma, lynx, sender) = try await pairWithAWaitingSender()
        sender.cancel()
        #expect(await sender.value?.cause == .cancelled)
        for session in [puma, lynx] { await session.close() }
    }

    @Test func `A cancelled message to several peers is sent to those before the one that it waits for`()
        async throws
    {
        let sessions = try await connected(["Puma", "Owl", "Lynx"], adjust: Self.makeBuffersSmall)
        let (puma, owl, lynx) = (sessions[0], sessions[1], sessions[2])
        let filler = await waitingSender(from: puma, to: lynx)
        let sender = Task { () -> PartialSendError? in
            do throws(PartialSendError) {
                try await puma.send(bytes: [9], to: [puma.peer(owl.id), puma.peer(lynx.id)])
                return nil
            } catch {
                return error
            }
        }
        #expect(await owl.messages.next()?.bytes.first == 9)
        sender.cancel()
        let failures = await sender.value?.failures
        #expect(failures?.mapValues(\.cause) == [lynx.id: .cancelled])
        filler.cancel()
        for session in sessions { await session.close() }
    }

    @Test func `Waiting senders fail when the peer is gone`() async throws {
        let (puma, lynx, sender) = try await pairWithAWaitingSender()
        await lynx.close()
        let cause = await sender.value?.cause
        #expect(cause == .peerLeft || cause == .notConnected)
        await puma.close()
    }

    @Test func `Pings and statistics work from any task`() async throws {
        let (puma, lynx) = try await connectedPair()
        let time = try await puma.ping(lynx.id, payload: [1, 2, 3])
        #expect(time > .zero && time < .seconds(5))
        let link = try #require(await puma.statistics().peers[lynx.id]?.link)
        #expect(link.roundTrip.minimum != nil)
        #expect(puma.peers.map(\.state) == [.connected])
        await #expect(throws: NighError.self) {
            try await puma.ping(lynx.id, payload: [UInt8](repeating: 0, count: 2_000))
        }
        await puma.close()
        await #expect(throws: NighError.self) { try await puma.ping(lynx.id) }
        await lynx.close()
    }

    @Test func `Sequences end when the session is closed`() async throws {
        let (puma, lynx) = try await connectedPair()
        try await puma.send(Array("before".utf8), to: lynx.id)
        let events = puma.events
        await puma.close()
        async let texts: [String] = {
            var texts: [String] = []
            for await message in lynx.messages {
                texts.append(String(decoding: message.bytes, as: UTF8.self))
            }
            return texts
        }()
        await lynx.close()
        #expect(await texts == ["before"])
        var last = ""
        for await event in events { last = "\(event)" }
        #expect(last == "the session is closed")
    }
}

/// Tests what becomes of a call whose task is cancelled.
@Suite struct CancellationTests {
    private let network = SimulatedNetwork()

    /// The outcome of a task on the virtual loop.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    private final class Outcome: @unchecked Sendable {
        fileprivate(set) var cause: NighError.Cause?
        fileprivate(set) var hasSucceeded = false
    }

    /// Makes a call in a task, and lets it get as far as it can.
    private func start(
        _ call: @escaping @Sendable () async throws(NighError) -> Void
    ) throws -> (task: Task<Void, Never>, outcome: Outcome) {
        let outcome = Outcome()
        let task = Task(executorPreference: network.loop) {
            do throws(NighError) {
                try await call()
                outcome.hasSucceeded = true
            } catch {
                outcome.cause = error.cause
            }
        }
        try network.run(for: .milliseconds(100))
        return (task, outcome)
    }

    @Test func `A cancelled ping fails at once`() throws {
        let (puma, lynx) = try network.connectedPair()
        lynx.faults.stall()
        let (session, id) = (puma.session, lynx.id)
        let (task, outcome) = try start { () async throws(NighError) in _ = try await session.ping(id) }
        #expect(outcome.cause == nil && !outcome.hasSucceeded)
        task.cancel()
        try network.run(for: .milliseconds(1))
        #expect(outcome.cause == .cancelled)
        // Its answer is of no use any more, and harms nothing.
        lynx.faults.release()
        try network.run(for: .seconds(1))
        #expect(puma.state(of: lynx.id) == .connected && puma.session.inspection.calls == 0)
    }

    @Test func `A loop of pings ends when its task is cancelled`() throws {
        let plan = try FaultPlan(parsing: "delay=10ms")
        let (puma, lynx) = try network.connectedPair(plan: plan)
        let (session, id) = (puma.session, lynx.id)
        let (task, outcome) = try start { () async throws(NighError) in
            while true { _ = try await session.ping(id) }
        }
        task.cancel()
        try network.run(for: .milliseconds(1))
        #expect(outcome.cause == .cancelled)
    }

    @Test func `A cancelled disconnect fails at once and the conversation still ends in good order`() throws {
        let (puma, lynx) = try network.connectedPair()
        lynx.faults.plan.delay = .seconds(1)
        try puma.session.trySend([1, 2, 3], to: lynx.id)
        let (session, id) = (puma.session, lynx.id)
        let (task, outcome) = try start { () async throws(NighError) in
            try await session.peer(id).disconnect()
        }
        #expect(outcome.cause == nil && !outcome.hasSucceeded)
        task.cancel()
        try network.run(for: .milliseconds(1))
        #expect(outcome.cause == .cancelled)
        try network.run(for: .seconds(3))
        #expect(lynx.messages.map(\.bytes) == [[1, 2, 3]])
        #expect(puma.state(of: lynx.id) == .available && lynx.state(of: puma.id) == .available)
    }

    @Test(arguments: [false, true])
    func `A cancelled pairing is withdrawn`(whenDigitsAreShown: Bool) throws {
        let puma = network.join("Puma")
        let lynx = network.join("Lynx") { $0.acceptsPairing = true }
        try network.run(for: .seconds(1))
        if !whenDigitsAreShown { lynx.faults.stall() }
        let (session, id) = (puma.session, lynx.id)
        let (task, outcome) = try start { () async throws(NighError) in try await session.peer(id).pair() }
        #expect(lynx.codes.count == (whenDigitsAreShown ? 1 : 0))
        task.cancel()
        try network.run(for: .milliseconds(1))
        #expect(outcome.cause == .cancelled)
        #expect(puma.pairingEnds == [.cancelled])
        #expect(lynx.pairingEnds == (whenDigitsAreShown ? [.pairingRefused(.declined)] : []))
        lynx.faults.release()
        try network.run(for: .seconds(1))
        #expect(puma.machine.links.isEmpty && puma.session.inconsistencies.isEmpty)
    }

    @Test func `A cancelled invitation by address ends`() throws {
        let (puma, silent) = (network.join("Puma"), network.hub().makeSilentAddress())
        let session = puma.session
        let (task, outcome) = try start { () async throws(NighError) in
            _ = try await session.invite(at: silent, timeout: .seconds(600))
        }
        #expect(outcome.cause == nil && puma.statistics.dials == 1)
        task.cancel()
        try network.run(for: .milliseconds(1))
        #expect(outcome.cause == .cancelled && puma.session.inspection.calls == 0)
    }
}
