import NighMemory
import NighTestKit
import Testing

@testable import NighCore

/// Tests what becomes of a call whose task is cancelled.
@Suite struct CancellationTests {
    private let place = Neighbourhood()

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
        let task = Task(executorPreference: place.loop) {
            do throws(NighError) {
                try await call()
                outcome.hasSucceeded = true
            } catch {
                outcome.cause = error.cause
            }
        }
        try place.run(.milliseconds(100))
        return (task, outcome)
    }

    @Test func aCancelledPingFailsAtOnce() throws {
        let (puma, lynx) = try place.pair()
        lynx.faults.stall()
        let (session, id) = (puma.session, lynx.id)
        let (task, outcome) = try start { () async throws(NighError) in _ = try await session.ping(id) }
        #expect(outcome.cause == nil && !outcome.hasSucceeded)
        task.cancel()
        try place.run(.milliseconds(1))
        #expect(outcome.cause == .cancelled)
        // Its answer is of no use any more, and harms nothing.
        lynx.faults.release()
        try place.run(.seconds(1))
        #expect(puma.state(of: lynx.id) == .connected && puma.session.inspection.calls == 0)
    }

    @Test func aLoopOfPingsEndsWhenItsTaskIsCancelled() throws {
        var plan = FaultPlan()
        plan.delay = .milliseconds(10)
        let (puma, lynx) = try place.pair(plan: plan)
        let (session, id) = (puma.session, lynx.id)
        let (task, outcome) = try start { () async throws(NighError) in
            while true { _ = try await session.ping(id) }
        }
        task.cancel()
        try place.run(.milliseconds(1))
        #expect(outcome.cause == .cancelled)
    }

    @Test func aCancelledDisconnectFailsAtOnceAndTheConversationStillEndsInGoodOrder() throws {
        let (puma, lynx) = try place.pair()
        lynx.faults.plan.delay = .seconds(1)
        try puma.session.trySend([1, 2, 3], to: lynx.id)
        let (session, id) = (puma.session, lynx.id)
        let (task, outcome) = try start { () async throws(NighError) in
            try await session.peer(id).disconnect()
        }
        #expect(outcome.cause == nil && !outcome.hasSucceeded)
        task.cancel()
        try place.run(.milliseconds(1))
        #expect(outcome.cause == .cancelled)
        try place.run(.seconds(3))
        #expect(lynx.messages.map(\.bytes) == [[1, 2, 3]])
        #expect(puma.state(of: lynx.id) == .available && lynx.state(of: puma.id) == .available)
    }

    @Test(arguments: [false, true])
    func aCancelledPairingIsWithdrawn(whenDigitsAreShown: Bool) throws {
        let puma = place.join("Puma")
        let lynx = place.join("Lynx") { $0.acceptsPairing = true }
        try place.run(.seconds(1))
        if !whenDigitsAreShown { lynx.faults.stall() }
        let (session, id) = (puma.session, lynx.id)
        let (task, outcome) = try start { () async throws(NighError) in try await session.peer(id).pair() }
        #expect(lynx.codes.count == (whenDigitsAreShown ? 1 : 0))
        task.cancel()
        try place.run(.milliseconds(1))
        #expect(outcome.cause == .cancelled)
        #expect(puma.pairingEnds == [.cancelled])
        #expect(lynx.pairingEnds == (whenDigitsAreShown ? [.pairingRefused(.declined)] : []))
        lynx.faults.release()
        try place.run(.seconds(1))
        #expect(puma.session.driver.machine.links.isEmpty && puma.session.inconsistencies.isEmpty)
    }
}

/// Tests that every call of a closed session fails with `closed`.
@Suite struct ClosedSessionTests {
    private let place = Neighbourhood()

    /// Makes every call that can fail. Returns the causes, by call.
    private func causes(of session: Session, to peer: PeerID) throws -> [String: NighError.Cause] {
        nonisolated(unsafe) var causes: [String: NighError.Cause] = [:]
        func note(_ name: String, _ call: () throws -> Void) {
            do { try call() } catch let error as NighError { causes[name] = error.cause } catch let error
                as PartialSendError
            { causes[name] = error.reason?.cause } catch {}
        }
        func noteTask(_ name: String, _ call: @escaping @Sendable () async throws -> Void) {
            Task(executorPreference: place.loop) {
                do { try await call() } catch let error as NighError { causes[name] = error.cause } catch let
                    error as PartialSendError
                { causes[name] = error.reason?.cause } catch {}
            }
        }
        let bytes = ByteSlice(Array("late".utf8))
        note("trySend") { try session.trySend(bytes, to: peer) }
        note("trySend, unreliable") { try session.trySend(bytes, to: peer, .unreliable) }
        note("trySend to several") { try session.trySend(bytes, to: [peer]) }
        note("trySend to none") { try session.trySend(bytes, to: []) }
        noteTask("send") { try await session.send(bytes, to: peer) }
        noteTask("send to several") { try await session.send(bytes: bytes.bytes, to: [session.peer(peer)]) }
        noteTask("broadcast") { try await session.broadcast(bytes: bytes.bytes) }
        noteTask("openStream") { _ = try await session.peer(peer).openStream(named: "late") }
        try place.run(.milliseconds(1))
        return causes
    }

    @Test func aMessageForAConversationThatEndedWithItsSessionIsRefused() throws {
        let (puma, lynx) = try place.pair()
        let session = puma.session
        let bytes = Array("late".utf8)
        try session.trySend(bytes, to: lynx.id)
        session.crash()
        for _ in 0..<2 {
            let error = #expect(throws: NighError.self) {
                try session.trySend(bytes, to: lynx.id)
            }
            #expect(error?.cause == .closed)
        }
    }

    private static let calls = [
        "trySend", "trySend, unreliable", "trySend to several", "trySend to none", "send",
        "send to several", "broadcast", "openStream",
    ]

    @Test func everyCallThatSendsFailsWithClosed() throws {
        let (puma, lynx) = try place.pair()
        puma.session.close {}
        try place.run(.seconds(2))
        let causes = try causes(of: puma.session, to: lynx.id)
        #expect(causes == Dictionary(uniqueKeysWithValues: Self.calls.map { ($0, .closed) }))
    }

    @Test func everyCallThatSendsFailsWithClosedAlsoWhileTheLastMessagesAreDelivered() throws {
        let (puma, lynx) = try place.pair()
        lynx.faults.stall()
        try puma.session.trySend([1], to: lynx.id)
        puma.session.close {}
        try place.run(.milliseconds(1))
        #expect(puma.state(of: lynx.id) == .connected, "it waits for what was sent")
        let causes = try causes(of: puma.session, to: lynx.id)
        #expect(causes == Dictionary(uniqueKeysWithValues: Self.calls.map { ($0, .closed) }))
    }

    @Test func everyOtherCallFailsWithClosed() throws {
        let (puma, lynx) = try place.pair()
        puma.session.close {}
        try place.run(.seconds(2))
        puma.outcomes = []
        puma.invite(lynx)
        puma.session.invite(at: lynx.address) { [weak puma] in puma?.outcomes.append($0) }
        puma.pair(with: lynx)
        puma.session.disconnect(lynx.id) { [weak puma] in puma?.outcomes.append($0) }
        nonisolated(unsafe) var ping: Result<Duration, NighError>?
        puma.session.ping(lynx.id) { ping = $0 }
        try place.run(.milliseconds(1))
        let causes = puma.outcomes.compactMap { outcome -> NighError.Cause? in
            if case .failure(let error) = outcome { error.cause } else { nil }
        }
        #expect(causes == [.closed, .closed, .closed, .closed])
        #expect(throws: NighError(.pinging, .closed)) { try ping?.get() }
    }

    /// "Invite the peer" would be the wrong advice.
    @Test func theErrorAdvisesNothing() throws {
        let (puma, lynx) = try place.pair()
        puma.session.close {}
        try place.run(.seconds(2))
        #expect(throws: NighError(.sending, .closed, peer: lynx.id.short)) {
            try puma.session.directory.port(of: lynx.id)
        }
    }
}
