import NighCore
import NighTestKit
import Synchronization
import Testing

@testable import Nigh

/// Tests how a program that reads no events hears of problems.
@Suite("A program that reads no events", .timeLimit(.minutes(15))) struct UnreadProblemsTests {
    private static let noAdapter = NighError(
        .starting, .unavailable("there is no adapter"), transport: "bluetooth", advice: "plug one in")
    private static let down = SessionEvent.transportDown("bluetooth", noAdapter)
    private static let up = SessionEvent.transportUp("bluetooth")
    private static let line =
        "Nigh: bluetooth cannot be used: starting bluetooth: there is no adapter; plug one in"

    private final class Problems {
        private var value: UnreadProblems

        init(_ transports: String..., areNamed: Bool = true) {
            value = UnreadProblems(transports: transports, areNamed: areNamed, print: nil)
        }

        func handle(_ event: SessionEvent) -> Bool { value.handle(event) }

        func takeLines() -> [String] { value.takeLines() }
    }

    @Test("gets one line about a transport that does not work, and no other while that lasts")
    func oneLine() {
        let problems = Problems("bluetooth")
        #expect(problems.takeLines().isEmpty)
        #expect(problems.handle(Self.down))
        #expect(problems.takeLines() == [Self.line])
        #expect(!problems.handle(Self.down))
        #expect(problems.takeLines().isEmpty)
    }

    @Test("gets no line about a transport that works soon, and another one when it fails anew")
    func comesAndGoes() {
        let problems = Problems("bluetooth")
        #expect(problems.handle(Self.down))
        #expect(!problems.handle(Self.up))
        #expect(problems.takeLines().isEmpty)
        #expect(problems.handle(Self.down))
        #expect(problems.takeLines() == [Self.line])
        #expect(!problems.handle(Self.up))
        #expect(problems.handle(Self.down))
        #expect(problems.takeLines() == [Self.line])
    }

    @Test("gets no line about a transport that it has not named, as long as another works")
    func others() {
        let problems = Problems("bluetooth", "tcp", areNamed: false)
        #expect(!problems.handle(Self.down))
        #expect(problems.takeLines().isEmpty)
        let gone = NighError(.starting, .unreachable, transport: "tcp")
        #expect(problems.handle(.transportDown("tcp", gone)))
        #expect(problems.takeLines().count == 2, "now none works")
    }

    @Test("gets a line about a transport that has worked")
    func hasWorked() {
        let problems = Problems("bluetooth", "tcp", areNamed: false)
        #expect(!problems.handle(Self.up))
        #expect(problems.handle(Self.down))
        #expect(problems.takeLines() == [Self.line])
    }

    @Test("gets a line if the session cannot be found or find anybody")
    func deaf() {
        let problems = Problems("tcp")
        let hidden = NighError(.advertising, .unavailable("the port is taken"), transport: "tcp")
        let blind = NighError(.browsing, .unavailable("there is no multicast"), transport: "tcp")
        #expect(problems.handle(.problem(hidden)))
        #expect(problems.handle(.problem(blind)))
        #expect(problems.takeLines() == ["Nigh: \(hidden)", "Nigh: \(blind)"])
        #expect(!problems.handle(.problem(hidden)))
        #expect(!problems.handle(.advertised(scheme: "tcp", name: "Puma")))
        #expect(problems.handle(.problem(hidden)), "it could be found meanwhile")
        #expect(!problems.handle(.problem(NighError(.connecting, .refused, transport: "tcp"))))
    }

    /// Over a radio that no machine has.
    private func session(
        _ lines: AsyncStream<String>.Continuation, configure: (inout SessionSettings) -> Void = { _ in }
    ) throws(NighError) -> Session {
        let radio = "bluetooth:adapter=hci60000"
        return try Session(service: "chat", name: "Puma", transports: radio) { settings in
            settings.identity = .temporary
            settings.printProblem = { lines.yield($0) }
            configure(&settings)
        }
    }

    @Test("hears of what does not work when it begins to read, however late that is")
    func lateReader() async throws {
        let (lines, prints) = AsyncStream.makeStream(of: String.self)
        let session = try session(prints)
        // It is printed only after it has happened.
        for await _ in lines { break }
        for await event in session.events {
            if case .transportDown("bluetooth", _) = event { break }
            Issue.record("\(event)")
            break
        }
        await session.close()
    }

    @Test("is the only one that gets the line, unless it does not want it or has a log")
    func printed() async throws {
        let (others, othersLines) = AsyncStream.makeStream(of: String.self)
        let (lines, ownLines) = AsyncStream.makeStream(of: String.self)
        // These would print before the last one does.
        let reader = try session(othersLines)
        let events = reader.events
        let handler = try session(othersLines) { $0.onEvent = { _ in } }
        let silent = try session(othersLines) { $0.printsProblems = false }
        let logger = try session(othersLines) { $0.log = { _, _, _ in } }
        let deaf = try session(ownLines)
        for await line in lines {
            #expect(line.hasPrefix("Nigh: bluetooth cannot be used: "))
            break
        }
        for session in [reader, handler, silent, logger, deaf] { await session.close() }
        othersLines.finish()
        for await line in others { Issue.record("\(line)") }
        withExtendedLifetime(events) {}
    }
}
