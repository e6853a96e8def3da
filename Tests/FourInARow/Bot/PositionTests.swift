import NighCore
import Testing

@testable import FourInARow
@testable import fourinarow_solver

@Suite struct PositionTests {
    @Test func `The cells that would complete a line are those where a disc completes one`() {
        var random = SeededGenerator(seed: 1)
        for _ in 0..<300 {
            let discs = Int(random.next() % 30)
            let board = RandomPosition(discs: discs, random: &random).board
            let position = Position(board, toMove: .red)
            var expected: UInt64 = 0
            for cell in Cell.allCases where board[cell] == nil {
                let bit: UInt64 = 1 << UInt64(cell.bit)
                if Lines.contains(board.red | bit) { expected |= bit }
            }
            #expect(Position.winningCells(position.mover, position.occupied) == expected)
            #expect(!Position.hasLine(position.mover))
        }
    }

    @Test func `The rows and cells written as literals are the ones of the board`() {
        #expect(Position.bottom == Lines.bottom && Position.cells == Lines.cells)
        for cell in Cell.allCases {
            let bit: UInt64 = 1 << UInt64(cell.bit)
            #expect((Position.evenRows & bit != 0) == (cell.row % 2 == 1))
            #expect((Position.oddRows & bit != 0) == (cell.row % 2 == 0))
        }
    }

    @Test func `A mirror exchanges the columns from the edges inwards`() throws {
        for cell in Cell.allCases {
            let opposite = try #require(
                Column(6 - cell.column.index).flatMap { Cell(column: $0, row: cell.row) })
            #expect(Position.mirrored(1 << UInt64(cell.bit)) == 1 << UInt64(opposite.bit))
        }
    }

    @Test func `A mirror image has the same symmetric key, and another position has another`() throws {
        let one = try position("abdcc")
        let mirrored = try position("gfdee")
        let other = try position("abdce")
        func key(_ position: (board: Board, toMove: Disc)) -> UInt64 {
            Position(position.board, toMove: position.toMove).symmetricKey
        }
        #expect(key(one) == key(mirrored))
        #expect(key(one) != key(other))
        #expect(key((one.board, .red)) != key((one.board, .yellow)))
        #expect(Position(one.board, toMove: .red).key != Position(mirrored.board, toMove: .red).key)
    }
}
