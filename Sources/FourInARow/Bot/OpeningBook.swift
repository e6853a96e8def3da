/// The answers of the highest level while there are few discs on the board, since a search takes minutes there.
///
/// The book has an answer for every position that a game can reach in which one side plays by the book, as first or as
/// second player, whatever the other side plays. A position and its mirror image count as one. The book is stored as
/// one digit for each position. `walk` visits the positions in an order that follows from the answers, so the order is
/// the same when the book is made and when it is read.
public struct OpeningBook: Sendable {
    /// The book has answers for boards with fewer discs than this.
    public static let end = 12

    /// The columns to play, by key. Of a position and its mirror image, the book has the lesser key.
    private var columns: [UInt64: Column] = [:]

    private init() {}

    /// A book without answers.
    public static let empty = OpeningBook()

    /// The book that `fourinarow-solver book` made.
    public static let standard = OpeningBook(digits: OpeningMoves.digits)!

    /// Creates a book from the digits that `make` returned, or returns nil if these are not the digits of a book.
    public init?(digits: String) {
        var rest = digits.utf8.filter { $0 != UInt8(ascii: "\n") }[...]
        let frontier = walk { position, _ in
            guard let digit = rest.popFirst(), let column = Column(Int(digit) - Int(UInt8(ascii: "0"))) else {
                return nil
            }
            return position.landing(in: column) == 0 ? nil : column
        }
        guard frontier != nil, rest.isEmpty else { return nil }
    }

    /// Makes the digits of a book, however long that takes. The solver's memory saves time and changes no digit.
    ///
    /// `progress` is called before each position is searched, with the number of its discs and the number of positions
    /// with as many discs that follow.
    public static func make(with solver: consuming Solver, progress: (_ discs: Int, _ waiting: Int) -> Void)
        -> String
    {
        var expert = Expert(book: .empty, solver: solver)
        var table = HorizonTable(entryBits: 20)
        var digits = ""
        var book = OpeningBook()
        let frontier = book.walk { position, waiting in
            progress(position.count, waiting)
            let column = expert.choose(position, &table, budget: .max)
            digits += String(column.index)
            return column
        }
        assert(frontier != nil)
        return digits
    }

    /// The boards on which the bot has to search by itself for the first time, and whose turn it is.
    public var frontier: [(board: Board, toMove: Disc)] {
        var book = OpeningBook()
        let frontier = book.walk { position, _ in column(for: position) } ?? []
        return frontier.map { ($0.board, $0.discToMove) }
    }

    /// Has a solver answer every `step`-th position with this number of discs again.
    ///
    /// Returns the number of positions that it answered, and the boards where its answer differs from the book's.
    public func recheck(
        with solver: consuming Solver, discs: Int, every step: Int
    ) -> (count: Int, different: [Board]) {
        var expert = Expert(book: .empty, solver: solver)
        var table = HorizonTable(entryBits: 17)
        var (visited, answered) = (0, 0)
        var different: [Board] = []
        var book = OpeningBook()
        _ = book.walk { position, _ in
            let column = column(for: position)
            guard position.count == discs else { return column }
            visited += 1
            guard visited % step == 0 else { return column }
            answered += 1
            if expert.choose(position, &table, budget: .max) != column { different.append(position.board) }
            return column
        }
        return (answered, different)
    }

    /// The number of positions that the book has an answer for.
    public var count: Int { columns.count }

    /// Returns the answer for this position, or nil if the book has none.
    func column(for position: Position) -> Column? {
        let key = position.key
        let mirrored = Position.mirrored(key)
        guard let column = columns[min(key, mirrored)] else { return nil }
        return key <= mirrored ? column : column.mirrored
    }

    /// Visits every position that a game by this book can reach, and stores the answers.
    ///
    /// It visits the positions of the first player before those of the second, and in each case those with fewer discs
    /// first. A game counts as over when a line can be completed at once. Where only one move does not lose at once, it
    /// does not call `answer`.
    ///
    /// Returns the first positions that have no answers. If `answer` returns nil, the walk stops and returns nil.
    private mutating func walk(_ answer: (_ position: Position, _ waiting: Int) -> Column?) -> [Position]? {
        var frontier: [Position] = []
        let start = Position(mover: 0, occupied: 0)
        for beginning in [[start], start.followers] {
            var layer = Set(beginning.map(\.canonical))
            while let discs = layer.first?.count, discs < Self.end {
                var next: Set<Position> = []
                let positions = layer.sorted { $0.key < $1.key }
                for (index, position) in positions.enumerated() {
                    guard let column = position.onlyMove ?? answer(position, positions.count - index - 1)
                    else {
                        return nil
                    }
                    columns[position.key] = column
                    for follower in position.playing(position.landing(in: column)).followers
                    where !follower.canWinAtOnce {
                        next.insert(follower.canonical)
                    }
                }
                layer = next
            }
            frontier += layer.sorted { $0.key < $1.key }
        }
        return frontier
    }
}

extension Position {
    /// The colour to move if red began.
    fileprivate var discToMove: Disc { count % 2 == 0 ? .red : .yellow }

    fileprivate var board: Board {
        discToMove == .red ? Board(red: mover, yellow: opponent) : Board(red: opponent, yellow: mover)
    }

    /// This position or its mirror image, whichever has the lesser key.
    fileprivate var canonical: Position {
        let mirrored = Position(mover: Self.mirrored(mover), occupied: Self.mirrored(occupied))
        return key <= mirrored.key ? self : mirrored
    }

    /// The positions after one more disc, without those in which that disc completes a line.
    fileprivate var followers: [Position] {
        Column.allCases.compactMap { column in
            let landing = landing(in: column)
            guard landing != 0, !Self.hasLine(mover | landing) else { return nil }
            return playing(landing)
        }
    }

    fileprivate var canWinAtOnce: Bool { Self.winningCells(mover, occupied) & landings != 0 }

    /// The only move that does not lose at once, or nil if there are several or none.
    fileprivate var onlyMove: Column? {
        let threats = Self.winningCells(opponent, occupied)
        let forced = landings & threats
        let moves = forced != 0 ? forced : landings & ~(threats >> 1)
        guard moves.nonzeroBitCount == 1 else { return nil }
        return Column.allCases[moves.trailingZeroBitCount / Lines.columnStride]
    }
}

extension Column {
    /// The column at the same distance from the other edge.
    fileprivate var mirrored: Column { Column.allCases[Board.columns - 1 - index] }
}
