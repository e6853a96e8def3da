/// One game between two, from the first move to its ending: whose turn it is, what may be played, who has won. A value; every
/// side of a table keeps its own and checks each move itself.
public struct Game: Hashable, Sendable {
    /// How a game ended.
    public enum Ending: Hashable, Sendable {
        /// That colour has four in a row.
        case line(Disc)
        /// The board is full.
        case draw
        /// That colour has given up.
        case resigned(Disc)
        /// Whoever played that colour is gone.
        case left(Disc)
        /// What came from whoever plays that colour breaks the rules, so nobody wins.
        case brokenOff(Disc, Breach)
    }

    /// Why a move cannot be made.
    public enum Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        /// The game has ended.
        case over
        /// The other colour is to move.
        case notYourTurn
        /// No disc fits in there any more.
        case columnFull

        /// In words for the person who wanted to move.
        public var description: String {
            switch self {
            case .over: "the game is over"
            case .notYourTurn: "it's not your turn"
            case .columnFull: "that column is full"
            }
        }
    }

    /// Which game at its table it is; each has a greater number than the one before.
    public let number: UInt32
    /// Who moves first.
    public let starter: Disc
    /// The discs so far.
    public private(set) var board = Board()
    /// The columns that were played, in order.
    public private(set) var moves: [Column] = []
    /// Where the last disc came to lie.
    public private(set) var lastCell: Cell?
    /// Nil while it goes on.
    public private(set) var ending: Ending?

    /// A game before its first move.
    public init(number: UInt32, starter: Disc) {
        self.number = number
        self.starter = starter
    }

    /// Who moves next; nil when it has ended.
    public var turn: Disc? {
        guard ending == nil else { return nil }
        return moves.count.isMultiple(of: 2) ? starter : starter.other
    }

    /// Who has won, by a line or because the other one gave up.
    public var winner: Disc? {
        switch ending {
        case .line(let disc): disc
        case .resigned(let disc): disc.other
        case .draw, .left, .brokenOff, nil: nil
        }
    }

    /// Why `disc` may not be dropped there now; nil when it may.
    public func refusal(of column: Column, by disc: Disc) -> Refusal? {
        guard let turn else { return .over }
        guard turn == disc else { return .notYourTurn }
        return board.hasRoom(in: column) ? nil : .columnFull
    }

    /// Makes a move, and ends the game where that ends it. Where it cannot be made nothing changes.
    @discardableResult
    public mutating func play(_ column: Column, by disc: Disc) throws(Refusal) -> Cell {
        if let refusal = refusal(of: column, by: disc) { throw refusal }
        guard let cell = board.drop(disc, in: column) else { throw .columnFull }
        moves.append(column)
        lastCell = cell
        if let winner = board.winner { ending = .line(winner) } else if board.isFull { ending = .draw }
        return cell
    }

    /// Ends it for another reason than a move; the first ending counts.
    mutating func end(_ ending: Ending) {
        if self.ending == nil { self.ending = ending }
    }

    /// How the game stands for whoever plays `disc`, or for somebody who only watches (nil).
    public func standing(of disc: Disc?) -> Standing {
        if ending == .draw { return .draw }
        guard let disc else { return .unknown }
        if let winner { return winner == disc ? .iWin : .youWin }
        guard let turn else { return .unknown }
        return turn == disc ? .myTurn : .yourTurn
    }
}

/// How a game stands, as one of the two players sees it.
public enum Standing: String, Hashable, Sendable, CaseIterable {
    /// There is no game, or it ended without a result, or one only watches.
    case unknown
    /// One is to move.
    case myTurn
    /// The other one is to move.
    case yourTurn
    /// One has won.
    case iWin
    /// The other one has won.
    case youWin
    /// Nobody has.
    case draw
}

/// What a program at a table may not do. It ends the game, and both sides are told. The raw value is what travels.
public enum Breach: UInt8, Error, Hashable, Sendable, CaseIterable, CustomStringConvertible {
    /// It moved when it was not its turn.
    case outOfTurn = 1
    /// It dropped a disc into a full column.
    case columnFull = 2
    /// What it claimed of its move (a win, a draw, neither) is not so.
    case falseClaim = 3
    /// It sent what cannot be read.
    case garbage = 4
    /// It did what cannot be done at this time: gave up when there was no game, asked for another before the end of one.
    case untimely = 5
    /// It told of events that did not follow one upon the other, or of something this side is said to have done and has not.
    case falseReport = 6

    /// In words that follow a name: "Puma moved out of turn".
    public var description: String {
        switch self {
        case .outOfTurn: "moved out of turn"
        case .columnFull: "played a column that is full"
        case .falseClaim: "claimed a result that is not so"
        case .garbage: "sent something that cannot be read"
        case .untimely: "did something that cannot be done now"
        case .falseReport: "told of something that has not happened"
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
