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

    /// Events, and the lines that a program with these transports gets after each: nil if there is nothing to print.
    private func expectLines(
        _ transports: String..., areNamed: Bool = true, after steps: [(SessionEvent, [String]?)]
    ) {
        var problems = UnreadProblems(transports: transports, areNamed: areNamed, print: nil)
        for (event, expected) in steps {
            let hasLines = problems.handle(event)
            let lines = problems.takeLines()
            #expect(hasLines == (expected != nil) && lines == expected ?? [], "\(event)")
        }
    }

    @Test func `A transport that does not work is one line while that lasts, and another when it fails anew`()
    {
        expectLines(
            "bluetooth",
            after: [(Self.down, [Self.line]), (Self.down, nil), (Self.up, nil), (Self.down, [Self.line])])
    }

    @Test func `A transport that works soon is no line`() {
        var problems = UnreadProblems(transports: ["bluetooth"], areNamed: true, print: nil)
        let answers = [problems.handle(Self.down), problems.handle(Self.up)]
        let lines = problems.takeLines()
        #expect(answers == [true, false] && lines.isEmpty)
    }

    @Test func `A transport that was not named is a line if it has worked, or once none works`() {
        let gone = NighError(.starting, .unreachable, transport: "tcp")
        expectLines("bluetooth", "tcp", areNamed: false, after: [(Self.up, nil), (Self.down, [Self.line])])
        expectLines(
            "bluetooth", "tcp", areNamed: false,
            after: [
                (Self.down, nil),
                (.transportDown("tcp", gone), [Self.line, "Nigh: tcp cannot be used: \(gone)"]),
            ])
    }

    @Test func `A session that cannot be found or find anybody is a line`() {
        let hidden = NighError(.advertising, .unavailable("the port is taken"), transport: "tcp")
        let blind = NighError(.browsing, .unavailable("there is no multicast"), transport: "tcp")
        expectLines(
            "tcp",
            after: [
                (.problem(hidden), ["Nigh: \(hidden)"]), (.problem(blind), ["Nigh: \(blind)"]),
                (.problem(hidden), nil), (.advertised(scheme: "tcp", name: "Puma"), nil),
                // It could be found meanwhile.
                (.problem(hidden), ["Nigh: \(hidden)"]),
                (.problem(NighError(.connecting, .refused, transport: "tcp")), nil),
            ])
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

    @Test func `A program hears of a problem when it begins to read, however late`() async throws {
        let (lines, prints) = AsyncStream.makeStream(of: String.self)
        let session = try session(prints)
        // It is printed only after it has happened.
        _ = try await lines.first()
        let event = try await session.events.first()
        guard case .transportDown("bluetooth", _) = event else { return _ = Issue.record("\(event)") }
        await session.close()
    }

    @Test func `A program that reads no events gets the line, unless it has a log`() async throws {
        let (others, othersLines) = AsyncStream.makeStream(of: String.self)
        let (lines, ownLines) = AsyncStream.makeStream(of: String.self)
        // These would print before the last one does.
        let reader = try session(othersLines)
        let events = reader.events
        let handler = try session(othersLines) { $0.onEvent = { _ in } }
        let silent = try session(othersLines) { $0.printsProblems = false }
        let logger = try session(othersLines) { $0.log = { _, _, _ in } }
        let deaf = try session(ownLines)
        #expect(try await lines.first().hasPrefix("Nigh: bluetooth cannot be used: "))
        for session in [reader, handler, silent, logger, deaf] { await session.close() }
        othersLines.finish()
        for await line in others { Issue.record("\(line)") }
        withExtendedLifetime(events) {}
    }
}
