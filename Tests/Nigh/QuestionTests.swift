import Nigh
import Testing

/// Questions as programs ask and answer them, over memory.
@Suite("A question", .timeLimit(.minutes(15))) struct QuestionTests {
    private enum Refusal: Error, Codable, Equatable {
        case negative(Int)
    }

    private struct NoSuch: Error, Decodable { var field: String }

    private struct Unwritable: Error {}

    /// Runs `body` with two connected sessions, of which Lynx answers.
    private func pair(
        _ body: (_ puma: Session, _ lynx: Session, _ asLynx: Peer) async throws -> Void
    ) async throws {
        try await TestNetwork().pair { puma, lynx, asLynx in
            try lynx.answer("square") { (number: Int, peer) in
                if number < 0 { throw Refusal.negative(number) }
                if number == 13 { throw Unwritable() }
                return "\(number * number) for \(peer.name)"
            }
            try await body(puma, lynx, asLynx)
        }
    }

    @Test func `A question gets the answer of the peer's program, or its error`() async throws {
        try await pair { _, _, asLynx in
            let square: String = try await asLynx.ask("square", 12)
            #expect(square == "144 for Puma")
            do throws(NighError) {
                let answer = try await asLynx.ask("square", -4, for: String.self)
                Issue.record("\(answer)")
            } catch {
                #expect(error.value(of: Refusal.self) == .negative(-4) && error.value(of: NoSuch.self) == nil)
                #expect("\(error)" == "asking \(asLynx.label): the peer's program answered with an error")
            }
            await #expect(throws: NighError(.asking, .answeredWithError([]), peer: asLynx.label)) {
                _ = try await asLynx.ask("square", 13, for: String.self)
            }
        }
    }

    @Test func `A question with a wrong value, name or answer fails at once`() async throws {
        try await pair { puma, lynx, asLynx in
            let events = lynx.events
            await #expect(throws: NighError(.asking, .answeredWithError([]), peer: asLynx.label)) {
                _ = try await asLynx.ask("square", "twelve", for: String.self)
            }
            for await case .messageUnreadable(let sender, _) in events {
                #expect(sender.name == "Puma")
                break
            }
            let unknown = await #expect(throws: NighError.self) {
                _ = try await asLynx.ask("root", 12, for: Int.self)
            }
            #expect(unknown?.cause == .unsupported("the question \"root\"") && unknown?.advice != nil)
            let unreadable = await #expect(throws: NighError.self) {
                _ = try await asLynx.ask("square", 12, for: Int.self)
            }
            #expect(unreadable?.stage == .receiving)
            #expect(throws: NighError.self) { try lynx.answer("square") { (_: Int, _) in 1 } }
            #expect(throws: NighError.self) { try lynx.answer("") { (_: Int, _) in 1 } }
            lynx.stopAnswering("square")
            await #expect(throws: NighError.self) { _ = try await asLynx.ask("square", 12, for: String.self) }
            await puma.close()
            let late = await #expect(throws: NighError.self) {
                _ = try await asLynx.ask("square", 12, for: String.self)
            }
            #expect(late?.cause == .closed)
        }
    }

    @Test func `A question that is cancelled cancels the task that works on it`() async throws {
        try await pair { _, lynx, asLynx in
            let (began, ended) = (
                AsyncStream.makeStream(of: Void.self), AsyncStream.makeStream(of: Void.self)
            )
            try lynx.answer("wait") { (_: Int, _) in
                began.continuation.yield()
                try? await Task.sleep(for: .seconds(600))
                ended.continuation.yield()
                return 0
            }
            let asking = Task { try await asLynx.ask("wait", 1, for: Int.self, timeout: nil) }
            try await began.stream.first()
            asking.cancel()
            try await ended.stream.first()
            await #expect(throws: NighError(.asking, .cancelled, peer: asLynx.label)) {
                try await asking.value
            }
        }
    }

    @Test func `Many tasks may ask, in both directions and from within an answer`() async throws {
        try await pair { puma, lynx, asLynx in
            for session in [puma, lynx] {
                try session.answer("sum") { (numbers: [Int], peer) -> Int in
                    guard let last = numbers.last else { return 0 }
                    return last + (try await peer.ask("sum", Array(numbers.dropLast()), timeout: nil))
                }
            }
            try await withThrowingTaskGroup { group in
                for number in 0..<16 {
                    group.addTask {
                        let sum: Int = try await asLynx.ask("sum", Array(0...number), timeout: nil)
                        #expect(sum == number * (number + 1) / 2)
                    }
                }
                try await group.waitForAll()
            }
        }
    }
}
