/// The highest level: keeps the outcome that each position has in theory.
///
/// Early in the game it plays by the book, later by the solver's proofs. Of the moves that keep the outcome, it plays
/// the one that a short search rates best: the nearest win or the farthest loss.
struct Expert: Sendable {
    private let book: OpeningBook
    private var solver: Solver

    /// The depth of the search that orders the moves.
    static let depth = 10
    /// The most positions to search on a board with fewer than `OpeningBook.end` discs that is not in the book. From
    /// that many discs on, the search goes on until it knows.
    static let budget: UInt64 = 5_000_000

    init(book: OpeningBook, solver: consuming Solver = Solver()) {
        self.book = book
        self.solver = solver
    }

    /// Returns the column to play. `budget` limits the search on a board with few discs that is not in the book.
    mutating func choose(
        _ position: Position, _ table: inout HorizonTable, budget: UInt64 = Expert.budget
    ) -> Column {
        if let column = book.column(for: position) { return column }
        let values = table.moveValues(position, depth: Self.depth, margin: HorizonSearch.infinity)
        let favourite = values.moves[0]
        if HorizonSearch.isCertain(favourite.value) { return favourite.column }
        // If all moves but one lose soon, there is nothing to find out.
        let open = values.moves.filter { !HorizonSearch.isCertain($0.value) }.map(\.column)
        if open.count == 1 { return open[0] }
        let isBounded = position.count < OpeningBook.end && budget < .max
        let end: UInt64 = isBounded ? solver.positions + budget : .max
        // A move about which nothing is proven may be as good as the best.
        var unrefuted = open
        for goal in [Outcome.win, .draw] {
            guard let isReached = reaches(goal, position, end) else { return unrefuted[0] }
            guard isReached else { continue }
            for column in open {
                // The move reaches the goal if the other side cannot prevent it.
                let theirGoal: Outcome = goal == .win ? .draw : .win
                guard let isKept = reaches(theirGoal, position.playing(position.landing(in: column)), end)
                else {
                    return unrefuted[0]
                }
                if !isKept { return column }
                unrefuted.removeFirst()
            }
        }
        return favourite.column
    }

    /// Returns whether the position reaches the goal, or nil if the solver has searched `end` positions without an
    /// answer.
    private mutating func reaches(_ goal: Outcome, _ position: Position, _ end: UInt64) -> Bool? {
        guard solver.positions < end else { return nil }
        return solver.reaches(goal, position, budget: end - solver.positions)
    }
}
