import Distributed
import NighActors
import NighCalls
import NighCore
import Synchronization

/// Doubles numbers, for peers.
@Resolvable protocol Doubling: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func double(_ number: UInt64) -> UInt64
}

/// Asks a peer numbered questions and calls its actor with numbers, many at once, and answers those of others with
/// twice their number. Counts what became of them.
final class Questions: Sendable {
    private struct State {
        var answered = 0
        var called = 0
        var wrong = 0
        /// The causes of failures, and how often each came.
        var failed: [String: Int] = [:]
        /// The numbers that others have asked, by their PeerIDs, and how many came a second time.
        var asked: [PeerID: Set<UInt64>] = [:]
        var repeated = 0
        /// No two programs begin at the same number.
        var lastNumber = UInt64.random(in: 0..<1 << 40) << 20
    }

    distributed actor Doubler: Doubling {
        typealias ActorSystem = NighActors.ActorSystem

        private let questions: Questions

        init(_ actors: ActorSystem, _ questions: Questions) {
            actorSystem = actors
            self.questions = questions
        }

        distributed func double(_ number: UInt64) -> UInt64 {
            if let peer = ActorSystem.currentPeer { questions.note(number, of: peer) }
            return number * 2
        }
    }

    let calls = Calls()
    private let actors = Mutex<ActorSystem?>(nil)
    private let state = Mutex(State())
    /// Called with each number that another program has asked.
    private let onNumber: @Sendable (UInt64) -> Void
    private static let name = "double"

    init(onNumber: @escaping @Sendable (UInt64) -> Void) { self.onNumber = onNumber }

    /// Answers the questions and calls of others. Call it once the session is made.
    func begin(_ session: Session) throws(NighError) {
        try calls.answer(Self.name) { [self] content, peer in
            guard let number = Self.number(content) else { return .error(content) }
            note(number, of: peer)
            return .answer(Self.bytes(number * 2))
        }
        let actors = try ActorSystem(session, timeout: nil)
        try actors.publish(Doubler(actors, self), as: Self.name, through: $Doubling.self)
        self.actors.withLock { $0 = actors }
    }

    private func note(_ number: UInt64, of peer: Peer) {
        state.withLock { state in
            if !state.asked[peer.id, default: []].insert(number).inserted { state.repeated += 1 }
        }
        onNumber(number)
    }

    /// Asks and calls until the task is cancelled, so many at once: one half are questions, the other calls.
    func ask(_ peer: Peer, atOnce count: Int) async {
        let doubler = try? actors.withLock(\.self)?.actor($Doubling.self, named: Self.name, on: peer)
        await withDiscardingTaskGroup { group in
            for index in 0..<count {
                group.addTask { [self] in await ask(peer, index % 2 == 0 ? nil : doubler) }
            }
        }
    }

    private func ask(_ peer: Peer, _ doubler: $Doubling?) async {
        while !Task.isCancelled {
            let number = state.withLock { state in
                state.lastNumber += 1
                return state.lastNumber
            }
            do {
                let answer =
                    if let doubler {
                        try await doubler.double(number)
                    } else {
                        try await double(number, at: peer)
                    }
                state.withLock { state in
                    if doubler == nil { state.answered += 1 } else { state.called += 1 }
                    if answer != number * 2 { state.wrong += 1 }
                }
            } catch {
                if (error as? NighError)?.cause == .cancelled { return }
                let cause = (error as? NighError)?.cause.facts.label ?? "\(type(of: error))"
                return state.withLock { $0.failed[cause, default: 0] += 1 }
            }
        }
    }

    private func double(_ number: UInt64, at peer: Peer) async throws(NighError) -> UInt64? {
        let outcome = try await calls.call(Self.name, Self.bytes(number), at: peer, timeout: nil)
        return if case .answer(let content) = outcome { Self.number(content) } else { nil }
    }

    /// The counts so far, by name. Loop only.
    var counts: [String: Int] {
        let left = calls.counts
        let counts = state.withLock { state in
            [
                "questionsAnswered": state.answered, "callsAnswered": state.called,
                "questionsWrong": state.wrong,
                "questionsFailed": state.failed.values.reduce(0, +),
                "questionsOfOthers": state.asked.values.reduce(0) { $0 + $1.count },
                "questionsRepeated": state.repeated, "questionsLeft": left.outgoing,
                "questionsOfOthersLeft": left.incoming + left.running,
            ].merging(state.failed.map { ("questionsFailed.\($0)", $1) }) { $1 }
        }
        return counts
    }

    private static func bytes(_ number: UInt64) -> ByteSlice {
        ByteSlice(withUnsafeBytes(of: number.bigEndian) { Array($0) })
    }

    private static func number(_ bytes: ByteSlice) -> UInt64? {
        guard bytes.count == 8 else { return nil }
        return bytes.withUnsafeBytes { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) }
    }
}
