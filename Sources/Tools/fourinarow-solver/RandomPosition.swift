import FourInARow
import NighCore

/// A position after random moves, in which nobody has won yet.
struct RandomPosition {
    let reference: ReferenceBoard
    let board: Board
    let toMove: Disc

    /// Creates a position with this number of discs.
    init(discs: Int, random: inout SeededGenerator) {
        while true {
            var reference = ReferenceBoard()
            var board = Board()
            var disc = Disc.red
            while board.count < discs, board.winner == nil {
                let column = Column.allCases[Int(random.next() % 7)]
                guard reference.drop(disc, column.index) != nil, board.drop(disc, in: column) != nil else {
                    continue
                }
                disc = disc.other
            }
            guard board.winner != nil else {
                (self.reference, self.board, toMove) = (reference, board, disc)
                return
            }
        }
    }
}
