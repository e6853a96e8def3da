/// The highest level: it keeps whatever outcome a position has in theory.
///
/// Early on it plays what the book says, later what the solver has proven. Of several moves that keep the outcome it
/// takes the one that looks best to a short search: the nearest win, or the farthest loss.
struct Expert: Sendable {
    private let book: OpeningBook
    private var solver: Solver

    /// How far it looks to put moves in order.
    static let depth = 10
    /// On a board the book should have an answer for and has none, it looks at no more positions than this. From more
    /// discs on it thinks until it knows.
    static let budget: UInt64 = 5_000_000

    init(book: OpeningBook, solver: consuming Solver = Solver()) {
        self.book = book
        self.solver = solver
    }

    /// The column to play. With few discs on a board that is not in the book, a budget bounds how long it thinks.
    mutating func choose(
        _ position: Position, _ table: inout HorizonTable, budget: UInt64 = Expert.budget
    ) -> Column {
        if let column = book.column(for: position) { return column }
        let opinions = table.opinions(position, depth: Self.depth, margin: HorizonSearch.infinity)
        let favourite = opinions.moves[0]
        if HorizonSearch.isCertain(favourite.value) { return favourite.column }
        let isBounded = position.count < OpeningBook.end && budget < .max
        let end: UInt64 = isBounded ? solver.positions + budget : .max
        var open = opinions.moves.filter { !HorizonSearch.isCertain($0.value) }.map(\.column)
        // A win is where the other side does not even reach a draw, a draw where it does not win.
        for theirGoal in [Outcome.draw, .win] {
            var remaining: [Column] = []
            for column in open {
                guard solver.positions < end else { return (remaining + [column])[0] }
                let next = position.playing(position.landing(in: column))
                switch solver.reaches(theirGoal, next, budget: end - solver.positions) {
                case false?: return column
                case true?: if theirGoal == .draw { remaining.append(column) }
                case nil: return theirGoal == .draw ? (remaining + [column])[0] : column
                }
            }
            open = remaining
        }
        return favourite.column
    }
}
