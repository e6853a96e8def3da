import Nigh
import NighCore
import NighTestKit
import Synchronization
import Testing

/// Questions as programs ask and answer them, over memory.
@Suite("A question", .timeLimit(.minutes(15))) struct QuestionTests {
    private let network = "memory:hub=questions-\(UInt64.random(in: 0 ... .max))"

    private enum Refusal: Error, Codable, Equatable {
        case negative(Int)
    }

    private struct Unwritable: Error {}

    /// Two connected sessions, of which Lynx answers.
    private func pair() async throws -> (puma: Session, lynx: Session, asLynx: Peer) {
        func session(_ name: String) throws -> Session {
            try Session(service: "questions", name: name, transports: network) { settings in
                settings.identity = .temporary
                settings.connectsAutomatically = true
            }
        }
        let (puma, lynx) = (try session("Puma"), try session("Lynx"))
        try lynx.answer("square") { (number: Int, peer) in
            if number < 0 { throw Refusal.negative(number) }
            if number == 13 { throw Unwritable() }
            return "\(number * number) for \(peer.name)"
        }
        for await case .connected(let peer) in puma.events { return (puma, lynx, peer) }
        throw NighError(.conversing, .notConnected)
    }

    @Test("gets the answer of the peer's program, or the error that it throws")
    func answers() async throws {
        let (puma, lynx, asLynx) = try await pair()
        #expect(try await asLynx.ask("square", 12) == "144 for Puma")
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
        await puma.close()
        await lynx.close()
    }

    private struct NoSuch: Error, Decodable { var field: String }

    @Test("that is no such value, or has no such answer, fails at once, and both sides learn why")
    func mistakes() async throws {
        let (puma, lynx, asLynx) = try await pair()
        let events = lynx.events
        await #expect(throws: NighError(.asking, .answeredWithError([]), peer: asLynx.label)) {
            _ = try await asLynx.ask("square", "twelve", for: String.self)
        }
        for await case .messageUnreadable(let sender, _) in events {
            #expect(sender.name == "Puma")
            break
        }
        do throws(NighError) {
            _ = try await asLynx.ask("root", 12, for: Int.self)
        } catch {
            #expect(error.cause == .unsupported("the question \"root\"") && error.advice != nil)
        }
        do throws(NighError) {
            _ = try await asLynx.ask("square", 12, for: Int.self)
        } catch {
            #expect(error.stage == .receiving)
        }
        #expect(throws: NighError.self) { try lynx.answer("square") { (_: Int, _) in 1 } }
        #expect(throws: NighError.self) { try lynx.answer("") { (_: Int, _) in 1 } }
        lynx.stopAnswering("square")
        await #expect(throws: NighError.self) { _ = try await asLynx.ask("square", 12, for: String.self) }
        await puma.close()
        await lynx.close()
        do throws(NighError) {
            _ = try await asLynx.ask("square", 12, for: String.self)
        } catch {
            #expect(error.cause == .closed)
        }
    }

    @Test("that is cancelled cancels the task that works on it")
    func cancelled() async throws {
        let (puma, lynx, asLynx) = try await pair()
        let (began, ended) = (Signal(), Signal())
        try lynx.answer("wait") { (_: Int, _) in
            began.set()
            try? await Task.sleep(for: .seconds(600))
            ended.set()
            return 0
        }
        let asking = Task { try await asLynx.ask("wait", 1, for: Int.self, timeout: nil) }
        await began.wait()
        asking.cancel()
        await ended.wait()
        await #expect(throws: NighError(.asking, .cancelled, peer: asLynx.label)) { try await asking.value }
        await puma.close()
        await lynx.close()
    }

    @Test("may be asked by many tasks, in both directions, and from the answer to another one")
    func many() async throws {
        let (puma, lynx, asLynx) = try await pair()
        try lynx.answer("sum") { (numbers: [Int], peer) -> Int in
            guard let last = numbers.last else { return 0 }
            return last + (try await peer.ask("sum", Array(numbers.dropLast())))
        }
        try puma.answer("sum") { (numbers: [Int], peer) -> Int in
            guard let last = numbers.last else { return 0 }
            return last + (try await peer.ask("sum", Array(numbers.dropLast())))
        }
        try await withThrowingTaskGroup { group in
            for number in 0..<16 {
                group.addTask {
                    let sum: Int = try await asLynx.ask("sum", Array(0...number))
                    #expect(sum == number * (number + 1) / 2)
                }
            }
            try await group.waitForAll()
        }
        await puma.close()
        await lynx.close()
    }
}

/// Something that has happened, or has not yet.
private final class Signal: Sendable {
    private let stream = AsyncStream<Void>.makeStream()
    func set() { stream.continuation.finish() }
    func wait() async { for await _ in stream.stream {} }
}
