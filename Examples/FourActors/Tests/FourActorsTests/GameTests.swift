import FourActors
import Nigh
import NighActors
import NighTestKit
import Synchronization
import Testing

@testable import FourActorsProgram

/// The program itself, on simulated devices, in virtual time.
@Suite("A game at a table") struct GameTests {
    private let simulation = Simulation()
    private let screens = Screens()

    @Test(
        "Two bots play to the end while links are cut, and one who watches sees each position once, in order")
    func bots() throws {
        let watching = start(on: "Hare") { try await $0.watch() }
        let hosting = start(on: "Puma", isBot: true) { try await $0.host() }
        try wait(for: "watching the table of Puma", on: "Hare")
        let joining = start(on: "Lynx", isBot: true) { try await $0.join() }
        while try !simulation.run(
            until: { lines(on: "Lynx").contains("red has won") }, within: .seconds(1))
        {
            for device in ["Puma", "Lynx", "Hare"] { simulation.cutLinks(of: device) }
            try #require(lines(on: "Lynx").count < 1_000)
        }
        for program in [watching, hosting, joining] { try simulation.result(of: program) }
        for device in ["Puma", "Lynx"] {
            #expect(lines(on: device).count { $0.hasSuffix(" has won") } == 1)
            #expect(lines(on: device).count { $0.contains("is connected again") } >= 5)
        }
        #expect(lines(on: "Puma").contains("red has won") && lines(on: "Puma").contains("you are red"))
        // A position's last line tells it from the one before and the one behind it.
        let turns = lines(on: "Hare").filter { $0.hasSuffix("'s turn") || $0.hasSuffix(" has won") }
        #expect(
            turns == (0..<15).map { $0.isMultiple(of: 2) ? "red's turn" : "yellow's turn" } + ["red has won"])
        #expect(discs(on: "Hare") == Array(0...15))
    }

    @Test("The table refuses a move out of turn with its own error, and the game goes on")
    func outOfTurn() throws {
        let (typed, keyboard) = AsyncStream.makeStream(of: String.self)
        let hosting = start(on: "Puma", typing: typed) { try await $0.host() }
        let joining = start(on: "Lynx", isBot: true) { try await $0.join() }
        try wait(for: "your turn", on: "Puma")
        let error = simulation.start(on: "Hare") {
            try await withSession(service: "fouractors") { session in
                session.connectsAutomatically = true
                let actors = try ActorSystem(session, errors: [TableError.self])
                for await tables in actors.listing(of: $GameTable.self) {
                    guard let table = tables.first?.actor else { continue }
                    do { _ = try await table.drop(into: 1) } catch { return error as? TableError }
                }
                return nil
            }
        }
        #expect(try simulation.result(of: error) == .notYourTurn)
        for (line, answer) in [
            ("x", "there is no such column: type a number from 1 to 7"),
            ("-9223372036854775808", "no such column"),
            ("4", "yellow's turn"), ("4", "it is not your turn"),
        ] {
            keyboard.yield(line)
            try wait(for: answer, on: "Puma")
        }
        keyboard.finish()
        for program in [hosting, joining] { try simulation.result(of: program) }
        #expect(lines(on: "Lynx").last?.contains("nobody has won") == true)
    }

    // MARK: Devices

    private func start(
        on device: String, isBot: Bool = false, typing typed: AsyncStream<String> = AsyncStream { _ in },
        _ play: @escaping @Sendable (Program<AsyncStream<String>>) async throws -> Void
    ) -> Task<Void, any Error> {
        let program = Program(isBot: isBot, lines: typed) { [screens] in screens.add($0, on: device) }
        return simulation.start(on: device) { try await play(program) }
    }

    /// The lines that a device has shown.
    private func lines(on device: String) -> [String] { screens.lines(on: device) }

    private func wait(for words: String, on device: String) throws {
        let isShown = try simulation.run(until: { lines(on: device).contains { $0.contains(words) } })
        try #require(isShown, "\(words) in \(lines(on: device))")
    }

    /// The numbers of discs on the boards that a device has shown.
    private func discs(on device: String) -> [Int] {
        let text = lines(on: device).filter { $0.count == 13 && !$0.contains("'") }.joined(separator: " ")
        return text.split(separator: "1 2 3 4 5 6 7").map { $0.count { $0 == "R" || $0 == "Y" } }
    }
}

/// The lines that the devices have shown.
private final class Screens: Sendable {
    private let shown = Mutex<[String: [String]]>([:])

    func lines(on device: String) -> [String] { shown.withLock { $0[device] ?? [] } }

    func add(_ text: String, on device: String) {
        shown.withLock { $0[device, default: []] += text.split(separator: "\n").map(String.init) }
    }
}
