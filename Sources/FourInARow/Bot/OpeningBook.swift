/// What the highest level plays while few discs lie, since to find that out takes minutes.
///
/// It has an answer wherever a game can come to in which one side has played by it: for the first player and for the
/// second, whatever the other side did. Positions and their mirror images are one. On disk it is one digit a position:
/// `walk` visits the positions in an order that follows from the answers, for who makes it and for who reads it alike.
package struct OpeningBook: Sendable {
    /// The book has answers for boards with fewer discs.
    package static let end = 12

    /// From keys of positions that are not greater than their mirror image, to the column to play.
    private var columns: [UInt64: Column] = [:]

    private init() {}

    /// A book without an answer.
    package static let empty = OpeningBook()

    /// The one that `fourinarow-solver book` has made.
    package static let standard = OpeningBook(digits: OpeningMoves.digits)!

    /// A book of the digits that `make` gave; nil if they are not the digits of a book.
    package init?(digits: String) {
        var rest = digits.utf8.filter { $0 != UInt8(ascii: "\n") }[...]
        let edge = walk { position, _ in
            guard let digit = rest.popFirst(), let column = Column(Int(digit) - Int(UInt8(ascii: "0"))) else {
                return nil
            }
            return position.landing(in: column) == 0 ? nil : column
        }
        guard edge != nil, rest.isEmpty else { return nil }
    }

    /// Makes the digits, with all the time this takes. What the solver remembers saves time and changes no digit.
    ///
    /// `tell` hears of each position before it is thought about: how many
    /// discs it has, and how many positions of as many discs come after it.
    package static func make(with solver: consuming Solver, tell: (_ discs: Int, _ waiting: Int) -> Void)
        -> String
    {
        var expert = Expert(book: .empty, solver: solver)
        var table = HorizonTable(entryBits: 20)
        var digits = ""
        var book = OpeningBook()
        let edge = book.walk { position, waiting in
            tell(position.count, waiting)
            let column = expert.choose(position, &table, budget: .max)
            digits += String(column.index)
            return column
        }
        assert(edge != nil)
        return digits
    }

    /// The boards on which the bot has to think by itself for the first time, and whose turn it is.
    package var edge: [(board: Board, toMove: Disc)] {
        var book = OpeningBook()
        let edge = book.walk { position, _ in column(for: position) } ?? []
        return edge.map { ($0.board, $0.discToMove) }
    }

    /// Has a solver answer every n-th position with so many discs again.
    ///
    /// Gives how many it answered, and the boards where it would play something else.
    package func answeredAnew(
        by solver: consuming Solver, discs: Int, every step: Int
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

    /// How many positions it has an answer for.
    package var count: Int { columns.count }

    /// The answer for this position; nil if the book does not have it.
    func column(for position: Position) -> Column? {
        let key = position.key
        let mirrored = Position.mirrored(key)
        guard let column = columns[min(key, mirrored)] else { return nil }
        return key <= mirrored ? column : column.mirrored
    }

    /// Visits every position a game by this book can come to, with few discs first, and notes the answers.
    ///
    /// Where a line can be completed at once the game is over; where only one move does not lose at once no answer is
    /// asked for. Gives the first positions it has no answers for; nil, with the walk cut short, if `answer` gives nil.
    private mutating func walk(_ answer: (_ position: Position, _ waiting: Int) -> Column?) -> [Position]? {
        var edge: [Position] = []
        let start = Position(mover: 0, occupied: 0)
        for beginning in [[start], start.followers] {
            var layer = Set(beginning.map(\.normal))
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
                        next.insert(follower.normal)
                    }
                }
                layer = next
            }
            edge += layer.sorted { $0.key < $1.key }
        }
        return edge
    }
}

extension Position {
    /// Whose turn it is where red began.
    fileprivate var discToMove: Disc { count % 2 == 0 ? .red : .yellow }

    fileprivate var board: Board {
        discToMove == .red ? Board(red: mover, yellow: opponent) : Board(red: opponent, yellow: mover)
    }

    /// This position or its mirror image, whichever has the lesser key.
    fileprivate var normal: Position {
        let mirrored = Position(mover: Self.mirrored(mover), occupied: Self.mirrored(occupied))
        return key <= mirrored.key ? self : mirrored
    }

    /// What it can become with one more disc, where that completes no line.
    fileprivate var followers: [Position] {
        Column.allCases.compactMap { column in
            let landing = landing(in: column)
            guard landing != 0, !Self.hasLine(mover | landing) else { return nil }
            return playing(landing)
        }
    }

    fileprivate var canWinAtOnce: Bool { Self.winningCells(mover, occupied) & landings != 0 }

    /// The move that alone does not lose at once; nil if there are several or none.
    fileprivate var onlyMove: Column? {
        let threats = Self.winningCells(opponent, occupied)
        let forced = landings & threats
        let moves = forced != 0 ? forced : landings & ~(threats >> 1)
        guard moves.nonzeroBitCount == 1 else { return nil }
        return Column.allCases[moves.trailingZeroBitCount / Lines.columnStride]
    }
}

extension Column {
    /// The column in the same place from the other edge.
    fileprivate var mirrored: Column { Column.allCases[Board.columns - 1 - index] }
}
