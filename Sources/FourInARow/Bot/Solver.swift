/// Finds out how a game ends if both sides play as well as can be.
///
/// The bot asks it, and so do programs that measure. It is a value, free of shared state: use it on any thread. It holds
/// 32 MiB, taken when it is made, and remembers there what it has proven, so that questions about one game get ever
/// faster. The first moves take it minutes; from 12 discs on it answers in a fraction of a second.
public struct Solver: Sendable {
    private var table: OutcomeTable
    /// How many positions it has looked at since it was made.
    public private(set) var positions: UInt64 = 0

    /// A solver that knows nothing yet.
    public init() { self.init(bucketBits: 22) }

    /// A solver with a table of 2 to the power of `bucketBits` times eight bytes, from 22 on.
    package init(bucketBits: Int) { table = OutcomeTable(bucketBits: bucketBits) }

    /// How the game ends for whoever moves next; nil if more positions than `budget` would have to be looked at.
    ///
    /// - Precondition: nobody has a line yet.
    public mutating func outcome(of board: Board, toMove disc: Disc, budget: UInt64 = .max) -> Outcome? {
        precondition(board.winner == nil, "the game is over")
        let position = Position(board, toMove: disc)
        return search(budget: budget) { $0.outcome(position) }
    }

    /// Whether the outcome is at least this one, which is one question where `outcome` needs two.
    mutating func reaches(_ goal: Outcome, _ position: Position, budget: UInt64 = .max) -> Bool? {
        search(budget: budget) { $0.reaches(goal, position) }
    }

    private mutating func search<Result>(budget: UInt64, _ ask: (inout OutcomeSearch) -> Result) -> Result? {
        let (result, searched) = table.withAccess { table in
            Candidates.withMemory { candidates in
                var search = OutcomeSearch(table: table, candidates: candidates, budget: budget)
                let result = ask(&search)
                return (search.isExhausted ? nil : result, search.positions)
            }
        }
        positions += searched
        return result
    }
}
