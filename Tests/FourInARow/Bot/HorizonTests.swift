import NighCore
import Testing

@testable import FourInARow
@testable import fourinarow_solver

@Suite struct HorizonTests {
    @Test(arguments: [28, 31, 34, 37, 40])
    func `A horizon beyond the end of the game finds the result of a slow solver`(discs: Int) throws {
        var random = SeededGenerator(seed: UInt64(discs))
        var table = HorizonTable(entryBits: 10)
        for _ in 0..<30 {
            let drawn = RandomPosition(discs: discs, random: &random)
            var reference = ReferenceSolver(limit: 1_000)
            guard let expected = reference.outcome(drawn.reference, toMove: drawn.toMove) else { continue }
            let position = Position(drawn.board, toMove: drawn.toMove)
            let best = table.moveValues(position, depth: 42, margin: 0).moves[0].value
            #expect(best.signum() == expected, "\(drawn.toMove) on\n\(drawn.board.text)")
            #expect(best == 0 || HorizonSearch.isCertain(best))
        }
    }

    @Test func `A nearer win is worth more, and so is a farther loss`() throws {
        func best(_ letters: String, depth: Int) throws -> Int {
            let (board, disc) = try position(letters)
            var table = HorizonTable(entryBits: 10)
            return table.moveValues(Position(board, toMove: disc), depth: depth, margin: 0).moves[0].value
        }
        // Three in a row now, or three with both ends open after two more discs: the seventh disc wins in both cases.
        #expect(try best("bbccdd", depth: 4) == HorizonSearch.win - 7)
        #expect(try best("ccdd", depth: 4) == HorizonSearch.win - 7)
        #expect(try best("ccdde", depth: 4) == 7 - HorizonSearch.win)
        #expect(try abs(best("d", depth: 4)) < HorizonSearch.win / 2)
    }

    @Test func `A move below the margin is not among the best, and a win is never missed for a good move`()
        throws
    {
        let columns = Column.allCases
        let values = MoveValues(moves: [
            (columns[3], 20), (columns[2], 15), (columns[4], 8), (columns[0], -9_980),
        ])
        #expect(values.best(within: 0) == [columns[3]])
        #expect(values.best(within: 5) == [columns[3], columns[2]])
        #expect(values.best(within: .max) == [columns[3], columns[2], columns[4]])
        let won = MoveValues(moves: [(columns[3], 9_990), (columns[2], 9_988), (columns[4], 8)])
        #expect(won.best(within: .max) == [columns[3]])
    }
}
