import NighCalls
import NighCore
import Synchronization

/// Asks a peer numbered questions, many at once, and answers those of others with twice their number. Counts what
/// became of them.
final class Questions: Sendable {
    private struct State {
        var answered = 0
        var wrong = 0
        var failed: [String] = []
        /// The numbers that others have asked, by their PeerIDs, and how many came a second time.
        var asked: [PeerID: Set<UInt64>] = [:]
        var repeated = 0
        var lastNumber: UInt64 = 0
    }

    let calls = Calls()
    private let state = Mutex(State())
    private static let name = "double"

    /// Answers the questions of others. Call it once the session is made.
    func begin() throws(NighError) {
        try calls.answer(Self.name) { [self] content, peer in
            guard let number = Self.number(content) else { return .error(content) }
            state.withLock { state in
                if !state.asked[peer.id, default: []].insert(number).inserted { state.repeated += 1 }
            }
            return .answer(Self.bytes(number * 2))
        }
    }

    /// Asks until the task is cancelled, so many questions at once.
    func ask(_ peer: Peer, atOnce count: Int) async {
        await withDiscardingTaskGroup { group in
            for _ in 0..<count { group.addTask { [self] in await ask(peer) } }
        }
    }

    private func ask(_ peer: Peer) async {
        while !Task.isCancelled {
            let number = state.withLock { state in
                state.lastNumber += 1
                return state.lastNumber
            }
            do throws(NighError) {
                let outcome = try await calls.call(Self.name, Self.bytes(number), at: peer, timeout: nil)
                let isRight = outcome == .answer(Self.bytes(number * 2))
                state.withLock { state in
                    state.answered += 1
                    if !isRight { state.wrong += 1 }
                }
            } catch {
                if error.cause == .cancelled { return }
                return state.withLock { $0.failed.append("\(error)") }
            }
        }
    }

    /// The counts so far, by name.
    var counts: [String: Int] {
        state.withLock { state in
            [
                "questionsAnswered": state.answered, "questionsWrong": state.wrong,
                "questionsFailed": state.failed.count,
                "questionsOfOthers": state.asked.values.reduce(0) { $0 + $1.count },
                "questionsRepeated": state.repeated,
            ]
        }
    }

    private static func bytes(_ number: UInt64) -> ByteSlice {
        ByteSlice(withUnsafeBytes(of: number.bigEndian) { Array($0) })
    }

    private static func number(_ bytes: ByteSlice) -> UInt64? {
        guard bytes.count == 8 else { return nil }
        return bytes.withUnsafeBytes { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) }
    }
}
