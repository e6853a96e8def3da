/// One game between two players, from the first move to the ending: the turn, the possible moves, and the winner.
///
/// A value. Every side of a table keeps its own, and checks each move itself.
public struct Game: Hashable, Sendable {
    /// How a game ended.
    public enum Ending: Hashable, Sendable {
        /// This colour has four in a row.
        case line(Disc)
        /// The board is full.
        case draw
        /// This colour has given up.
        case resigned(Disc)
        /// The player of this colour is gone.
        case left(Disc)
        /// The program that plays this colour broke the rules, so nobody wins.
        case brokenOff(Disc, Breach)
    }

    /// Why a move cannot be made.
    public enum Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        /// The game has ended.
        case over
        /// It is the other colour's turn.
        case notYourTurn
        /// The column is full.
        case columnFull

        /// The reason, in words for the person who wanted to move.
        public var description: String {
            switch self {
            case .over: "the game is over"
            case .notYourTurn: "it's not your turn"
            case .columnFull: "that column is full"
            }
        }
    }

    /// The number of the game at its table, greater than that of the game before.
    public let number: UInt32
    /// The colour that moves first.
    public let starter: Disc
    /// The discs played so far.
    public private(set) var board = Board()
    /// The columns played so far, in order.
    public private(set) var moves: [Column] = []
    /// The cell of the last disc.
    public private(set) var lastCell: Cell?
    /// How the game ended; nil while it goes on.
    public private(set) var ending: Ending?

    /// Creates a game before its first move.
    public init(number: UInt32, starter: Disc) {
        self.number = number
        self.starter = starter
    }

    /// The colour that moves next; nil if the game has ended.
    public var turn: Disc? {
        guard ending == nil else { return nil }
        return moves.count.isMultiple(of: 2) ? starter : starter.other
    }

    /// The colour that has won, by a line or because the other one gave up.
    public var winner: Disc? {
        switch ending {
        case .line(let disc): disc
        case .resigned(let disc): disc.other
        case .draw, .left, .brokenOff, nil: nil
        }
    }

    /// Returns why `disc` may not be dropped into the column now, or nil if it may.
    public func refusal(of column: Column, by disc: Disc) -> Refusal? {
        guard let turn else { return .over }
        guard turn == disc else { return .notYourTurn }
        return board.hasRoom(in: column) ? nil : .columnFull
    }

    /// Makes a move, and ends the game if the move completes a line or fills the board. Throws, and changes nothing, if
    /// the move is not possible.
    @discardableResult
    public mutating func play(_ column: Column, by disc: Disc) throws(Refusal) -> Cell {
        if let refusal = refusal(of: column, by: disc) { throw refusal }
        guard let cell = board.drop(disc, in: column) else { throw .columnFull }
        moves.append(column)
        lastCell = cell
        if let winner = board.winner { ending = .line(winner) } else if board.isFull { ending = .draw }
        return cell
    }

    /// Ends the game for a reason other than a move. Only the first ending counts.
    mutating func end(_ ending: Ending) {
        if self.ending == nil { self.ending = ending }
    }

    /// This game with the two colours exchanged.
    var withColoursExchanged: Game {
        var exchanged = Game(number: number, starter: starter.other)
        for column in moves {
            guard let turn = exchanged.turn, (try? exchanged.play(column, by: turn)) != nil else {
                preconditionFailure("a game has moves that it does not allow")
            }
        }
        if let ending { exchanged.end(ending.withColoursExchanged) }
        return exchanged
    }
}

extension Game.Ending {
    /// This ending with the two colours exchanged.
    var withColoursExchanged: Game.Ending {
        switch self {
        case .line(let disc): .line(disc.other)
        case .draw: .draw
        case .resigned(let disc): .resigned(disc.other)
        case .left(let disc): .left(disc.other)
        case .brokenOff(let disc, let breach): .brokenOff(disc.other, breach)
        }
    }
}

/// A violation of the rules by a program at a table. It ends the game, and both sides are notified. Messages contain
/// the raw value.
public enum Breach: UInt8, Error, Hashable, Sendable, CaseIterable, CustomStringConvertible {
    /// It moved when it was not its turn.
    case outOfTurn = 1
    /// It dropped a disc into a full column.
    case columnFull = 2
    /// It claimed a wrong result of its move: a win, a draw, or neither.
    case falseClaim = 3
    /// It sent something that cannot be decoded.
    case garbage = 4
    /// It did something that is not possible at this time: it resigned when there was no game, or asked for another
    /// game before the end of one.
    case untimely = 5
    /// It reported events with a gap, or an action that this side has not taken.
    case falseReport = 6

    /// The breach in words that follow a name: "Puma moved out of turn".
    public var description: String {
        switch self {
        case .outOfTurn: "moved out of turn"
        case .columnFull: "played a column that is full"
        case .falseClaim: "claimed a wrong result"
        case .garbage: "sent something that cannot be read"
        case .untimely: "did something that cannot be done now"
        case .falseReport: "reported something that has not happened"
        }
    }

    init(_ refusal: Game.Refusal) {
        switch refusal {
        case .over: self = .untimely
        case .notYourTurn: self = .outOfTurn
        case .columnFull: self = .columnFull
        }
    }
}
