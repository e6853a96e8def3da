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
        // Where all moves but one lose soon there is nothing to find out.
        let open = opinions.moves.filter { !HorizonSearch.isCertain($0.value) }.map(\.column)
        if open.count == 1 { return open[0] }
        let isBounded = position.count < OpeningBook.end && budget < .max
        let end: UInt64 = isBounded ? solver.positions + budget : .max
        // As long as nothing is proven about a move, it may be as good as the best.
        var hopes = open
        for goal in [Outcome.win, .draw] {
            guard let isReached = ask(goal, position, end) else { return hopes[0] }
            guard isReached else { continue }
            for column in open {
                // The move reaches the goal if the other side cannot keep us from it.
                let theirGoal: Outcome = goal == .win ? .draw : .win
                guard let isKept = ask(theirGoal, position.playing(position.landing(in: column)), end) else {
                    return hopes[0]
                }
                if !isKept { return column }
                hopes.removeFirst()
            }
        }
        return favourite.column
    }

    /// Whether the position reaches the goal; nil if the solver has looked at `end` positions before it knew.
    private mutating func ask(_ goal: Outcome, _ position: Position, _ end: UInt64) -> Bool? {
        guard solver.positions < end else { return nil }
        return solver.reaches(goal, position, budget: end - solver.positions)
    }
}
