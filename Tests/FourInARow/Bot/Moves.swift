import FourInARow
import Testing

/// The board after alternating moves, given as the letters of their columns, and whose turn it is. Red moves first.
func position(_ letters: String) throws -> (board: Board, toMove: Disc) {
    var board = Board()
    var disc = Disc.red
    for letter in letters {
        let column = try #require(Column.allCases.first { $0.description == String(letter) })
        try #require(board.drop(disc, in: column) != nil)
        disc = disc.other
    }
    return (board, disc)
}
