/// A table refuses something. It travels to the caller as it is.
public enum TableError: Error, Codable, Hashable {
    case taken
    case noSuchColumn
    case columnFull
    case notYourTurn
    case gameOver
}

extension TableError: CustomStringConvertible {
    /// The reason as a sentence.
    public var description: String {
        switch self {
        case .taken: "both seats are taken"
        case .noSuchColumn: "there is no such column: type a number from 1 to 7"
        case .columnFull: "that column is full: choose another one"
        case .notYourTurn: "it is not your turn"
        case .gameOver: "the game is over"
        }
    }
}
