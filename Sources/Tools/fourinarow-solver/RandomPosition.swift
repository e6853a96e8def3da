import FourInARow
import NighCore

/// A position that random moves have led to, with nobody having won yet.
struct RandomPosition {
    let slow: SlowBoard
    let board: Board
    let toMove: Disc

    /// A position with so many discs.
    init(discs: Int, random: inout SeededGenerator) {
        while true {
            var slow = SlowBoard()
            var board = Board()
            var disc = Disc.red
            while board.count < discs, board.winner == nil {
                let column = Column.allCases[Int(random.next() % 7)]
                guard slow.drop(disc, column.index) != nil, board.drop(disc, in: column) != nil else {
                    continue
                }
                disc = disc.other
            }
            guard board.winner != nil else {
                (self.slow, self.board, toMove) = (slow, board, disc)
                return
            }
        }
    }
}
