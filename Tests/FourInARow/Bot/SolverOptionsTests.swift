import Arguments
import Testing

@testable import fourinarow_solver

@Suite struct SolverOptionsTests {
    @Test func `Each command has its number, or a default`() throws {
        guard case .check(games: 1_000_000) = try Options(["check"]) else { throw UsageError("check") }
        guard case .check(games: 5) = try Options(["check", "--games", "5"]) else {
            throw UsageError("check 5")
        }
        guard case .bench(positions: 100) = try Options(["bench"]) else { throw UsageError("bench") }
        guard case .matches(games: 7) = try Options(["matches", "--games", "7"]) else {
            throw UsageError("matches")
        }
        guard case .book(bits: 27) = try Options(["book"]) else { throw UsageError("book") }
        guard case .help = try Options(["--help"]) else { throw UsageError("help") }
    }

    @Test(arguments: [
        [], ["solve"], ["check", "--games"], ["check", "--games", "-1"], ["check", "--games", "x"],
        ["book", "--bits", "21"], ["bench", "--games", "5"], ["bench", "more"],
    ])
    func `Impossible options are refused`(arguments: [String]) {
        #expect(throws: UsageError.self) { try Options(arguments) }
    }
}
