/// Finds out how a game ends if both sides play perfectly.
///
/// The bot uses it, and so do programs that measure. It is a value without shared state, so any thread may use it. It
/// allocates 32 MiB when it is created, and stores proven outcomes there, so that further questions about the same game
/// take less and less time. The first moves of a game take minutes. From 12 discs on, an answer takes a fraction of a
/// second.
public struct Solver: Sendable {
    private var table: OutcomeTable
    /// The number of positions that the solver has visited since it was created.
    public private(set) var positions: UInt64 = 0

    /// Creates a solver that knows nothing yet.
    public init() { self.init(bucketBits: 22) }

    /// Creates a solver with a table of 2 to the power of `bucketBits` times eight bytes. `bucketBits` is 22 to 30.
    public init(bucketBits: Int) { table = OutcomeTable(bucketBits: bucketBits) }

    /// Returns the outcome for the side to move, or nil if that takes more than `budget` positions.
    ///
    /// - Precondition: neither colour has a line yet.
    public mutating func outcome(of board: Board, toMove disc: Disc, budget: UInt64 = .max) -> Outcome? {
        precondition(board.winner == nil, "the game is over")
        let position = Position(board, toMove: disc)
        return search(budget: budget) { $0.outcome(position) }
    }

    /// Returns whether the outcome is at least `goal`, or nil if that takes more than `budget` positions.
    ///
    /// This is one question; `outcome` needs two.
    mutating func reaches(_ goal: Outcome, _ position: Position, budget: UInt64 = .max) -> Bool? {
        search(budget: budget) { $0.reaches(goal, position) }
    }

    private mutating func search<Result>(budget: UInt64, _ body: (inout OutcomeSearch) -> Result) -> Result? {
        let (result, searched) = table.withAccess { table in
            Candidates.withMemory { candidates in
                var search = OutcomeSearch(table: table, candidates: candidates, budget: budget)
                let result = body(&search)
                return (search.isExhausted ? nil : result, search.positions)
            }
        }
        positions += searched
        return result
    }
}
