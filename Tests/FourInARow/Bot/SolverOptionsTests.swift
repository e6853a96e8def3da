import Arguments
import Testing

@testable import fourinarow_solver

@Suite struct SolverOptionsTests {
    @Test("Each command has its number, or a default")
    func commands() throws {
        guard case .check(games: 1_000_000) = try Options(["check"]) else { throw Misuse("check") }
        guard case .check(games: 5) = try Options(["check", "--games", "5"]) else { throw Misuse("check 5") }
        guard case .bench(positions: 100) = try Options(["bench"]) else { throw Misuse("bench") }
        guard case .matches(games: 7) = try Options(["matches", "--games", "7"]) else {
            throw Misuse("matches")
        }
        guard case .book(bits: 27) = try Options(["book"]) else { throw Misuse("book") }
        guard case .help = try Options(["--help"]) else { throw Misuse("help") }
    }

    @Test(
        "What cannot be done is refused",
        arguments: [
            [], ["solve"], ["check", "--games"], ["check", "--games", "-1"], ["check", "--games", "x"],
            ["book", "--bits", "21"], ["bench", "--games", "5"], ["bench", "more"],
        ])
    func refused(arguments: [String]) {
        #expect(throws: Misuse.self) { try Options(arguments) }
    }
}
