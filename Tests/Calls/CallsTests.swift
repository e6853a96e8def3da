import NighCalls
import NighCore
import NighTestKit
import Synchronization
import Testing

private typealias Pair = VirtualPair<Calls>

/// The outcomes of the calls of a test.
///
/// `@unchecked Sendable`: everything happens on the one virtual loop.
private final class Outcomes: @unchecked Sendable {
    var outcomes: [UInt32: CallOutcome] = [:]
    var causes: [UInt32: NighError.Cause] = [:]
    /// How many times each call has begun at the other side, and which were cancelled there.
    var begun: [UInt32: Int] = [:]
    var cancelledThere: Set<UInt32> = []
}

private func bytes(_ number: UInt32) -> ByteSlice { ByteSlice(withUnsafeBytes(of: number) { Array($0) }) }
private func number(_ bytes: ByteSlice) -> UInt32 {
    bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
}

extension VirtualPair where Layer == Calls {
    fileprivate convenience init(lynxHasCalls: Bool = true) throws {
        try self.init(lynxHasLayer: lynxHasCalls) { _ in
        } layer: {
            Calls()
        }
    }

    /// Has Puma make the calls with these numbers, each in a task of its own.
    @discardableResult
    fileprivate func call(
        _ numbers: some Sequence<UInt32>, _ outcomes: Outcomes, named name: String = "echo",
        timeout: Duration? = nil
    ) -> [UInt32: Task<Void, Never>] {
        let (calls, peer) = (puma.layer, asPumaSeesLynx)
        var tasks: [UInt32: Task<Void, Never>] = [:]
        for number in numbers {
            tasks[number] = Task(executorPreference: loop) {
                do throws(NighError) {
                    outcomes.outcomes[number] = try await calls.call(
                        name, bytes(number), at: peer, timeout: timeout)
                } catch {
                    outcomes.causes[number] = error.cause
                }
            }
        }
        return tasks
    }

    /// Has Lynx answer each call with its content, after a while that depends on its number.
    fileprivate func echo(_ outcomes: Outcomes, delay: @escaping @Sendable (UInt32) -> Int64) throws {
        let loop = loop
        try lynx.layer.answer("echo") { content, _ in
            let number = number(content)
            outcomes.begun[number, default: 0] += 1
            let answer = Mutex<CheckedContinuation<Void, Never>?>(nil)
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    if Task.isCancelled { return continuation.resume() }
                    answer.withLock { $0 = continuation }
                    loop.schedule(at: loop.now + .milliseconds(delay(number))) {
                        answer.withLock { $0.take() }?.resume()
                    }
                }
            } onCancel: {
                answer.withLock { $0.take() }?.resume()
            }
            if Task.isCancelled { outcomes.cancelledThere.insert(number) }
            return .answer(content)
        }
    }

    fileprivate var isIdle: Bool {
        puma.layer.counts == (0, 0, 0) && lynx.layer.counts == (0, 0, 0)
    }
}

@Suite("Calls of sessions") struct CallsTests {
    @Test("are answered once each, while the link is cut again and again")
    func cuts() throws {
        let pair = try Pair()
        let outcomes = Outcomes()
        try pair.echo(outcomes) { Int64($0 % 7) * 30 }
        for round in UInt32(0)..<20 {
            pair.call((0..<1_000).map { round * 1_000 + $0 }, outcomes)
            try pair.run(.milliseconds(900))
            pair.puma.faults.cut()
        }
        try pair.run(.seconds(60))
        #expect(outcomes.causes.isEmpty && outcomes.outcomes.count == 20_000)
        #expect(outcomes.outcomes.allSatisfy { $0.value == .answer(bytes($0.key)) })
        #expect(outcomes.begun.count == 20_000 && outcomes.begun.values.allSatisfy { $0 == 1 })
        #expect(pair.isIdle)
        try pair.close()
    }

    @Test("that are cancelled at any moment leave nothing at either side")
    func cancelled() throws {
        let pair = try Pair()
        let outcomes = Outcomes()
        var random = SeededGenerator(seed: 7)
        try pair.echo(outcomes) { Int64($0 % 5) * 50 }
        var tasks: [Task<Void, Never>] = []
        for round in UInt32(0)..<100 {
            tasks += pair.call((0..<100).map { round * 100 + $0 }, outcomes).values
            try pair.run(.milliseconds(Int64.random(in: 0...20, using: &random)))
            if round % 10 == 3 { pair.puma.faults.cut() }
            for _ in 0..<90 {
                tasks.remove(at: Int.random(in: tasks.indices, using: &random)).cancel()
            }
        }
        for task in tasks { task.cancel() }
        try pair.run(.seconds(60))
        #expect(outcomes.causes.count + outcomes.outcomes.count == 10_000)
        #expect(outcomes.causes.values.allSatisfy { $0 == .cancelled } && outcomes.causes.count > 5_000)
        #expect(!outcomes.cancelledThere.isEmpty && outcomes.begun.values.allSatisfy { $0 == 1 })
        #expect(pair.isIdle)
        // The stream is as before.
        pair.call([1 << 20], outcomes)
        try pair.run()
        #expect(outcomes.outcomes[1 << 20] != nil)
        try pair.close()
    }

    @Test(
        "fail when their time has passed, and their tasks at the other side are cancelled, also without a link"
    )
    func timeouts() throws {
        let pair = try Pair()
        let outcomes = Outcomes()
        try pair.echo(outcomes) { _ in 20_000 }
        pair.call([1], outcomes, timeout: .seconds(5))
        try pair.run(.seconds(1))
        for member in [pair.puma, pair.lynx] {
            member.faults.block()
            member.faults.cut()
        }
        try pair.run(.milliseconds(3_900))
        #expect(outcomes.causes.isEmpty && outcomes.cancelledThere.isEmpty)
        try pair.run(.milliseconds(200))
        #expect(outcomes.causes == [1: .timedOut] && outcomes.cancelledThere == [1])
        try pair.close()
    }

    @Test("that were sent say so when the conversation ends before their answers")
    func gone() throws {
        let pair = try Pair()
        let outcomes = Outcomes()
        try pair.echo(outcomes) { _ in 20_000 }
        pair.call([1], outcomes)
        try pair.run()
        pair.lynx.session.close {}
        try pair.run(.seconds(10))
        #expect(outcomes.causes == [1: .answerLost] && outcomes.cancelledThere == [1])
        pair.call([2], outcomes)
        try pair.run()
        #expect(outcomes.causes[2] == .notConnected)
        pair.puma.session.close {}
        try pair.run(.seconds(10))
        pair.call([3], outcomes)
        try pair.run()
        #expect(outcomes.causes[3] == .closed)
    }

    @Test(
        "are refused with a clear error by a peer of an earlier version, or one that does not know the name")
    func refused() throws {
        let old = try Pair(lynxHasCalls: false)
        let outcomes = Outcomes()
        old.call([1], outcomes)
        try old.run()
        #expect(outcomes.causes == [1: .unsupported("questions")])
        #expect(old.puma.session.connectedPeerIDs == [old.lynx.session.id])
        try old.close()
        let pair = try Pair()
        pair.call([2], outcomes, named: "nobody answers this")
        try pair.run()
        #expect(outcomes.outcomes[2] == .unknownName)
        try pair.echo(outcomes) { _ in 0 }
        #expect(throws: NighError.self) { try pair.echo(outcomes) { _ in 0 } }
        pair.lynx.layer.stopAnswering("echo")
        try pair.echo(outcomes) { _ in 0 }
        try pair.close()
    }

    @Test(
        "whose answer is longer than the peer takes fail by themselves, and the program that answers hears of it"
    )
    func tooLong() throws {
        let pair = try Pair()
        let outcomes = Outcomes()
        let limit = try pair.lynx.session.reference.messageLimit(for: pair.puma.session.id)
        try pair.echo(outcomes) { _ in 1_000 }
        try pair.lynx.layer.answer("long") { _, _ in
            .answer(ByteSlice([UInt8](repeating: 0, count: limit + 1)))
        }
        pair.call([1], outcomes)
        pair.call([2], outcomes, named: "long")
        try pair.run()
        #expect(outcomes.outcomes == [1: .answer(bytes(1)), 2: .error(ByteSlice([]))])
        #expect(outcomes.causes.isEmpty && pair.isIdle)
        #expect(pair.problems.causes == [.messageTooLarge(size: limit + 1, limit: limit)])
        try pair.close()
    }

    @Test("of one peer are worked on up to a limit, beyond which they wait")
    func bounded() throws {
        let pair = try Pair()
        let outcomes = Outcomes()
        try pair.echo(outcomes) { _ in 1_000 }
        pair.call(0..<1_000, outcomes)
        try pair.run(.milliseconds(500))
        #expect(
            outcomes.begun.count == Calls.mostRunning && pair.lynx.layer.counts.running == Calls.mostRunning)
        try pair.run(.seconds(5))
        #expect(outcomes.outcomes.count == 1_000 && pair.isIdle)
        try pair.close()
    }

    @Test("end the stream of a peer that breaks the rules, and nothing else")
    func hostile() throws {
        let pair = try Pair()
        let outcomes = Outcomes()
        try pair.echo(outcomes) { _ in 0 }
        nonisolated(unsafe) var stream: ByteStream?
        pair.puma.session.openStream(named: "", to: pair.lynx.session.id, for: .calls) {
            stream = try? $0.get()
        }
        _ = try stream?.tryWrite(CallRecord.cancel(number: 5).frame)
        try pair.run()
        #expect(throws: NighError.self) { try stream?.tryWrite(ByteSlice([1])) }
        pair.call([1], outcomes)
        try pair.run()
        #expect(outcomes.outcomes.count == 1)
        try pair.close()
    }
}
