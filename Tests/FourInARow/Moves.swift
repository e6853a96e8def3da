import FourInARow
import Testing

// Games and positions, given as the letters of the played columns: "ddcc".

/// Forty-two moves without a line.
let drawnGame = "fefagceffaebbaefgfdbbccgcggdgcadaddedbecba"

func column(_ letter: String) throws -> Column {
    try #require(Column.allCases.first { $0.description == letter })
}

func words(_ text: String) throws -> SafeText { try #require(SafeText(text)) }

func game(_ letters: String, number: UInt32 = 1, starter: Disc = .red) throws -> Game {
    var game = Game(number: number, starter: starter)
    for letter in letters { try game.play(column(String(letter)), by: try #require(game.turn)) }
    return game
}

/// The board after alternating moves, and whose turn it is.
func position(_ letters: String, first: Disc = .red) throws -> (board: Board, toMove: Disc) {
    var board = Board()
    var disc = first
    for letter in letters {
        try #require(board.drop(disc, in: try column(String(letter))) != nil)
        disc = disc.other
    }
    return (board, disc)
}
