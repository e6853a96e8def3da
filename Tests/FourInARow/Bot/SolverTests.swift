import FourInARow
import NighCore
import Testing

@testable import fourinarow_solver

@Suite struct SolverTests {
    @Test(arguments: [26, 30, 34, 38, 40, 41]) func `The solver finds the same outcomes as a slow one`(
        discs: Int
    ) throws {
        var random = SeededGenerator(seed: UInt64(discs))
        var solver = Solver()
        for _ in 0..<20 {
            let position = RandomPosition(discs: discs, random: &random)
            var reference = ReferenceSolver(limit: 1_000)
            guard let expected = reference.outcome(position.reference, toMove: position.toMove) else {
                continue
            }
            let found = solver.outcome(of: position.board, toMove: position.toMove)
            #expect(found?.rawValue == expected, "\(position.toMove) on\n\(position.board.text)")
        }
    }

    @Test func `An obvious outcome is found at once`() throws {
        var solver = Solver()
        let winning = try position("dadbdc")
        #expect(solver.outcome(of: winning.board, toMove: winning.toMove) == .win)
        // Red threatens to extend a three at both ends, so yellow loses.
        let losing = try position("ccdde")
        #expect(solver.outcome(of: losing.board, toMove: losing.toMove) == .loss)
        let full = try position("abababbababacdcdcddcdcdcefefeffefefegggggg")
        #expect(full.board.isFull)
        #expect(solver.outcome(of: full.board, toMove: full.toMove) == .draw)
        #expect(solver.positions < 100)
    }

    @Test func `A search that would take too long has no result, and its partial results are not used`()
        throws
    {
        var random = SeededGenerator(seed: 1)
        var solver = Solver()
        #expect(solver.outcome(of: Board(), toMove: .red, budget: 500) == nil)
        #expect((500...600).contains(solver.positions))
        var fresh = Solver()
        for _ in 0..<10 {
            let position = RandomPosition(discs: 20, random: &random)
            let expected = fresh.outcome(of: position.board, toMove: position.toMove)
            #expect(expected != nil)
            for budget in [20, 40, 80, 160, 320, 640, 1_280, .max] as [UInt64] {
                let found = solver.outcome(of: position.board, toMove: position.toMove, budget: budget)
                #expect(found == nil || found == expected)
            }
            #expect(solver.outcome(of: position.board, toMove: position.toMove) == expected)
        }
    }
}
