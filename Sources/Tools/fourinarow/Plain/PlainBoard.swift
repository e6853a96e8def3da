import FourInARow

/// A board in lines that are read aloud or printed.
enum PlainBoard {
    /// Returns the board, top row first, and the meanings of its letters.
    static func lines(of game: Game) -> [String] {
        let rows = game.board.text.split(separator: "\n").map { row in
            row.map(String.init).joined(separator: " ")
        }
        return ["1 2 3 4 5 6 7"] + rows + ["R is red, Y is yellow."]
    }
}
