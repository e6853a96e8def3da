import NighCalls
import NighCore
import NighTestKit
import Synchronization
import Testing

/// Two sessions, and the outcomes of the calls that Puma makes.
///
/// `@unchecked Sendable`: everything happens on the one virtual loop.
private final class Pair: @unchecked Sendable {
    private let sessions: VirtualPair<Calls>
    var outcomes: [UInt32: CallOutcome] = [:]
    var causes: [UInt32: NighError.Cause] = [:]
    /// How many times each call has begun at the other side, and which were cancelled there.
    var begun: [UInt32: Int] = [:]
    var cancelledThere: Set<UInt32> = []

    init(lynxHasCalls: Bool = true) throws {
        sessions = try VirtualPair(lynxHasLayer: lynxHasCalls) { Calls() }
    }

    /// Runs `body` with two sessions, of which Lynx answers each call with its content after `delay` milliseconds, and
    /// closes them.
    static func withEcho(delay: @escaping @Sendable (UInt32) -> Int64, _ body: (Pair) throws -> Void) throws {
        let pair = try Pair()
        try pair.echo(delay: delay)
        try body(pair)
        try pair.sessions.close()
    }

    var puma: VirtualPair<Calls>.Member { sessions.puma }
    var lynx: VirtualPair<Calls>.Member { sessions.lynx }
    var problems: [NighError.Cause] { sessions.problems.causes }
    var isIdle: Bool { puma.layer.counts == (0, 0, 0) && lynx.layer.counts == (0, 0, 0) }

    func run(_ time: Duration = .seconds(2)) throws { try sessions.run(time) }

    /// Has Puma make the calls with these numbers, each in a task of its own.
    @discardableResult
    func call(
        _ numbers: some Sequence<UInt32>, named name: String = "echo", timeout: Duration? = nil
    ) -> [Task<Void, Never>] {
        let (calls, peer) = (puma.layer, sessions.asPumaSeesLynx)
        return numbers.map { number in
            Task(executorPreference: sessions.loop) { [self] in
                do throws(NighError) {
                    outcomes[number] = try await calls.call(name, bytes(number), at: peer, timeout: timeout)
                } catch {
                    causes[number] = error.cause
                }
            }
        }
    }

    /// Has Lynx answer each call with its content, after a while that depends on its number.
    func echo(delay: @escaping @Sendable (UInt32) -> Int64) throws {
        let loop = sessions.loop
        try lynx.layer.answer("echo") { [weak self] content, _ in
            let number = number(content)
            self?.begun[number, default: 0] += 1
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
            if Task.isCancelled { self?.cancelledThere.insert(number) }
            return .answer(content)
        }
    }
}

private func bytes(_ number: UInt32) -> ByteSlice { ByteSlice(withUnsafeBytes(of: number) { Array($0) }) }
private func number(_ bytes: ByteSlice) -> UInt32 {
    bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
}

@Suite("Calls of sessions") struct CallsTests {
    @Test func `Calls are answered once each, while the link is cut again and again`() throws {
        try Pair.withEcho(delay: { Int64($0 % 7) * 30 }) { pair in
            for round in UInt32(0)..<20 {
                pair.call((0..<1_000).map { round * 1_000 + $0 })
                try pair.run(.milliseconds(900))
                pair.puma.faults.cut()
            }
            try pair.run(.seconds(60))
            #expect(pair.causes.isEmpty && pair.outcomes.count == 20_000)
            #expect(pair.outcomes.allSatisfy { $0.value == .answer(bytes($0.key)) })
            #expect(pair.begun.count == 20_000 && pair.begun.values.allSatisfy { $0 == 1 })
            #expect(pair.isIdle)
        }
    }

    @Test func `Calls that are cancelled at any moment leave nothing at either side`() throws {
        try Pair.withEcho(delay: { Int64($0 % 5) * 50 }) { pair in
            var random = SeededGenerator(seed: 7)
            var tasks: [Task<Void, Never>] = []
            for round in UInt32(0)..<100 {
                tasks += pair.call((0..<100).map { round * 100 + $0 })
                try pair.run(.milliseconds(Int64.random(in: 0...20, using: &random)))
                if round % 10 == 3 { pair.puma.faults.cut() }
                for _ in 0..<90 { tasks.remove(at: Int.random(in: tasks.indices, using: &random)).cancel() }
            }
            for task in tasks { task.cancel() }
            try pair.run(.seconds(60))
            #expect(pair.causes.count + pair.outcomes.count == 10_000)
            #expect(pair.causes.values.allSatisfy { $0 == .cancelled } && pair.causes.count > 5_000)
            #expect(!pair.cancelledThere.isEmpty && pair.begun.values.allSatisfy { $0 == 1 })
            #expect(pair.isIdle)
            // The stream is as before.
            pair.call([1 << 20])
            try pair.run()
            #expect(pair.outcomes[1 << 20] != nil)
        }
    }

    @Test func `Calls end at both sides when their time has passed, also without a link`() throws {
        try Pair.withEcho(delay: { _ in 20_000 }) { pair in
            pair.call([1], timeout: .seconds(5))
            try pair.run(.seconds(1))
            for member in [pair.puma, pair.lynx] {
                member.faults.block()
                member.faults.cut()
            }
            try pair.run(.milliseconds(3_900))
            #expect(pair.causes.isEmpty && pair.cancelledThere.isEmpty)
            try pair.run(.milliseconds(200))
            #expect(pair.causes == [1: .timedOut] && pair.cancelledThere == [1])
        }
    }

    @Test func `Calls that were sent say so when the conversation ends before their answers`() throws {
        try Pair.withEcho(delay: { _ in 20_000 }) { pair in
            pair.call([1])
            try pair.run()
            pair.lynx.session.close {}
            try pair.run(.seconds(10))
            #expect(pair.causes == [1: .answerLost] && pair.cancelledThere == [1])
            pair.call([2])
            try pair.run()
            #expect(pair.causes[2] == .notConnected)
            pair.puma.session.close {}
            try pair.run(.seconds(10))
            pair.call([3])
            try pair.run()
            #expect(pair.causes[3] == .closed)
        }
    }

    @Test func `A peer without calls, or without the name, refuses with a clear error`() throws {
        let old = try Pair(lynxHasCalls: false)
        old.call([1])
        try old.run()
        #expect(old.causes == [1: .unsupported("questions")])
        #expect(old.puma.session.connectedPeerIDs == [old.lynx.session.id])
        try Pair.withEcho(delay: { _ in 0 }) { pair in
            pair.call([2], named: "nobody answers this")
            try pair.run()
            #expect(pair.outcomes[2] == .unknownName)
            #expect(throws: NighError.self) { try pair.echo { _ in 0 } }
            pair.lynx.layer.stopAnswering("echo")
            try pair.echo { _ in 0 }
        }
    }

    @Test func `A call whose answer is too long fails by itself, and both sides hear of it`() throws {
        try Pair.withEcho(delay: { _ in 1_000 }) { pair in
            let limit = try pair.lynx.session.reference.messageLimit(for: pair.puma.session.id)
            try pair.lynx.layer.answer("long") { _, _ in
                .answer(ByteSlice([UInt8](repeating: 0, count: limit + 1)))
            }
            pair.call([1])
            pair.call([2], named: "long")
            try pair.run()
            #expect(pair.outcomes == [1: .answer(bytes(1)), 2: .error(ByteSlice([]))])
            #expect(pair.causes.isEmpty && pair.isIdle)
            #expect(pair.problems == [.messageTooLarge(size: limit + 1, limit: limit)])
        }
    }

    @Test func `Of the calls of one peer, a limited number is worked on, and the others wait`() throws {
        try Pair.withEcho(delay: { _ in 1_000 }) { pair in
            pair.call(0..<1_000)
            try pair.run(.milliseconds(500))
            #expect(pair.begun.count == Calls.mostRunning)
            #expect(pair.lynx.layer.counts.running == Calls.mostRunning)
            try pair.run(.seconds(5))
            #expect(pair.outcomes.count == 1_000 && pair.isIdle)
        }
    }

    @Test func `A peer that breaks the rules ends the stream of its calls, and nothing else`() throws {
        try Pair.withEcho(delay: { _ in 0 }) { pair in
            let stream = try pair.puma.session.reference.openStream(
                named: "", to: pair.lynx.session.id, for: .calls)
            _ = try stream.tryWrite(CallRecord.cancel(number: 5).frame)
            try pair.run()
            #expect(throws: NighError.self) { try stream.tryWrite(ByteSlice([1])) }
            pair.call([1])
            try pair.run()
            #expect(pair.outcomes.count == 1)
        }
    }
}
