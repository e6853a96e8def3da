import FourInARow
import Testing

@testable import fourinarow_solver

@Suite struct BoardTests {
    @Test func `Columns and cells exist only on the board`() throws {
        #expect(Column.allCases.map(\.description).joined() == "abcdefg")
        #expect(Column(-1) == nil && Column(7) == nil && Column(6)?.index == 6)
        let first = try #require(Column(0))
        #expect(Cell(column: first, row: -1) == nil && Cell(column: first, row: 6) == nil)
        #expect(Cell.allCases.count == 42 && Set(Cell.allCases).count == 42)
        #expect(Cell.allCases == Cell.allCases.sorted())
        #expect(Cell.allCases.first?.description == "a1" && Cell.allCases.last?.description == "g6")
    }

    /// Random games are compared with a slow board until each of the 69 lines has won alone for each colour.
    @Test func `Random games, in which each line wins, have the same result as on a slow board`() {
        #expect(Set(ReferenceBoard.lines.map { Set($0) }).count == 69)
        var won: [Disc: Set<[ReferenceBoard.Place]>] = [.red: [], .yellow: []]
        var seed: UInt64 = 0
        while seed < 2_000 || won.values.contains(where: { $0.count < 69 }), seed < 100_000 {
            let game = RandomGame(seed: seed, isThorough: seed % 50 == 0)
            #expect(game.difference == nil, "seed \(seed)")
            let lines = Disc.allCases.map { ($0, game.reference.lines(of: $0)) }.filter { !$0.1.isEmpty }
            if lines.count == 1, lines[0].1.count == 1 { won[lines[0].0]?.insert(lines[0].1[0]) }
            seed += 1
        }
        #expect(won.mapValues(\.count) == [.red: 69, .yellow: 69])
    }

    @Test func `The text has the top row first, and a line end after each row`() throws {
        #expect(Board().text == String(repeating: ".......\n", count: 6))
        #expect(try position("aabg").board.text == ".......\n.......\n.......\n.......\nY......\nRR....Y\n")
    }

    @Test func `Boards with the same discs are equal, in whatever order they were dropped`() throws {
        let boards = try ["abc", "cba", "abd"].map { try position($0).board }
        #expect(boards[0] == boards[1] && boards[0] != boards[2])
        #expect(Set(boards).count == 2)
    }
}
