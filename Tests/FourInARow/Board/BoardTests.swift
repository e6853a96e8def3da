import FourInARow
import NighCore
import Testing

@testable import fourinarow_solver

@Suite struct BoardTests {
    /// The board after alternating moves, given as the letters of their columns.
    private func play(_ letters: String, first: Disc = .red) throws -> Board {
        var board = Board()
        var disc = first
        for letter in letters {
            let column = try #require(Column.allCases.first { $0.description == String(letter) })
            #expect(board.drop(disc, in: column) != nil)
            disc = disc.other
        }
        return board
    }

    @Test("Columns and cells exist only on the board")
    func bounds() throws {
        #expect(Column.allCases.map(\.description).joined() == "abcdefg")
        #expect(Column(-1) == nil && Column(7) == nil && Column(6)?.index == 6)
        let first = try #require(Column(0))
        #expect(Cell(column: first, row: -1) == nil && Cell(column: first, row: 6) == nil)
        #expect(Cell.allCases.count == 42 && Set(Cell.allCases).count == 42)
        #expect(Cell.allCases == Cell.allCases.sorted())
        #expect(Cell.allCases.first?.description == "a1" && Cell.allCases.last?.description == "g6")
    }

    @Test("Random games have the same result as on a slow board that is an array", arguments: 0..<10)
    func randomGames(batch: UInt64) {
        for seed in batch * 200..<batch * 200 + 200 {
            let game = RandomGame(seed: seed, isThorough: seed % 50 == 0)
            #expect(game.difference == nil, "seed \(seed)")
        }
    }

    @Test("Each of the 69 lines alone wins, and three of its cells do not", arguments: Disc.allCases)
    func everyLine(disc: Disc) throws {
        #expect(Set(ReferenceBoard.lines.map { Set($0) }).count == 69)
        for line in ReferenceBoard.lines {
            let board = try lineAlone(disc, line)
            #expect(board.winner == disc, "\(line)")
            #expect(try board.winningCells == line.map(cell).sorted())
            for missing in line {
                let board = try lineAlone(disc, line, without: missing)
                #expect(board.winner == nil && board.winningCells.isEmpty, "\(line) without \(missing)")
            }
        }
    }

    private func cell(_ place: ReferenceBoard.Place) throws -> Cell {
        try #require(Column(place.column).flatMap { Cell(column: $0, row: place.row) })
    }

    /// A board on which `line` is the only line. The discs below it are drawn at random until there is no other line.
    /// With `missing`, the disc at that place is the other side's, and the board has no line.
    private func lineAlone(
        _ disc: Disc, _ line: [ReferenceBoard.Place], without missing: ReferenceBoard.Place? = nil
    )
        throws
        -> Board
    {
        var random = SeededGenerator(seed: 1)
        for _ in 0..<1_000 {
            var board = Board()
            var reference = ReferenceBoard()
            for place in line.sorted(by: { $0.row < $1.row }) {
                let column = try #require(Column(place.column))
                while reference.discs[place.column].count <= place.row {
                    let isOurs = reference.discs[place.column].count == place.row
                    let colour: Disc =
                        isOurs ? place == missing ? disc.other : disc : random.oneIn(2) ? .red : .yellow
                    #expect(reference.drop(colour, place.column) == board.drop(colour, in: column)?.row)
                }
            }
            let lines = reference.lines(of: disc) + reference.lines(of: disc.other)
            if lines == (missing == nil ? [line] : []) { return board }
        }
        Issue.record("no such board")
        return Board()
    }

    @Test("Lines that cross or overlap are one set of cells, sorted")
    func overlappingLines() throws {
        // The last disc, d1, completes a row of seven at the bottom and a diagonal up to g4.
        var board = Board()
        let columns = Column.allCases
        for (disc, index) in [
            (Disc.red, 0), (.red, 1), (.red, 2), (.red, 4), (.red, 5), (.red, 6), (.red, 4), (.yellow, 5),
            (.red, 5), (.yellow, 6), (.yellow, 6), (.red, 6),
        ] {
            #expect(board.drop(disc, in: columns[index]) != nil)
        }
        #expect(board.winner == nil)
        #expect(board.drop(.red, in: columns[3])?.description == "d1")
        #expect(board.winner == .red)
        let names = board.winningCells.map(\.description)
        #expect(names == ["a1", "b1", "c1", "d1", "e1", "e2", "f1", "f3", "g1", "g4"])
        #expect(board.winningCells == board.winningCells.sorted())
    }

    @Test("A line does not wrap around the edge of the board")
    func noLineRoundTheEdge() throws {
        // Three on top of the first column and one at the bottom of the second: adjacent as bits, but not on the board.
        var board = Board()
        let columns = Column.allCases
        for disc in [Disc.yellow, .yellow, .yellow, .red, .red, .red] {
            #expect(board.drop(disc, in: columns[0]) != nil)
        }
        #expect(board.drop(.red, in: columns[1]) != nil)
        #expect(board.winner == nil)
    }

    @Test("A full column accepts no disc, and nothing changes")
    func fullColumn() throws {
        var board = try play("aaaaaa")
        let before = board
        let first = try #require(Column(0))
        #expect(board.height(of: first) == 6 && !board.hasRoom(in: first))
        #expect(board.drop(.red, in: first) == nil)
        #expect(board == before && board.count == 6)
        #expect(Column.allCases.dropFirst().allSatisfy { board.hasRoom(in: $0) && board.height(of: $0) == 0 })
    }

    @Test("A full board without a line has no winner", arguments: Disc.allCases)
    func draw(first: Disc) throws {
        let board = try play("abababbababacdcdcddcdcdcefefeffefefegggggg", first: first)
        #expect(board.isFull && board.count == 42)
        #expect(board.winner == nil && board.winningCells.isEmpty)
    }

    @Test("The colour of the line has won, whichever colour moved first")
    func staysWithItsColour() throws {
        let board = try play("abababa", first: .yellow)
        #expect(board.winner == .yellow)
        #expect(board.winningCells.map(\.description) == ["a1", "a2", "a3", "a4"])
    }

    @Test("The text has the top row first, and a line end after each row")
    func text() throws {
        #expect(Board().text == String(repeating: ".......\n", count: 6))
        let board = try play("aabg")
        #expect(board.text == ".......\n.......\n.......\n.......\nY......\nRR....Y\n")
        let full = try play("gggggg", first: .yellow)
        #expect(full.text == "......R\n......Y\n......R\n......Y\n......R\n......Y\n")
    }

    @Test("Boards with the same discs are equal, in whatever order they were dropped")
    func equality() throws {
        #expect(try play("abc") == play("cba"))
        #expect(try play("abc") != play("abd"))
        #expect(try Set([play("abc"), play("cba"), play("ab")]).count == 2)
    }
}
