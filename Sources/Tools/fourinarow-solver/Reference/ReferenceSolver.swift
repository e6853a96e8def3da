import FourInARow

/// Finds the outcome of a position by trying every move. It only remembers the positions that it has seen.
///
/// `check` compares the real solver with this one. It shares no code with that solver, nor with the real board.
struct ReferenceSolver {
    private var visited = 0
    private var seen: [[UInt8]: Int] = [:]
    private let limit: Int

    /// Creates a solver that gives up after this many positions.
    init(limit: Int) { self.limit = limit }

    /// Returns 1, 0 or -1 for a win, a draw or a loss of the side to move, or nil if the solver has given up.
    mutating func outcome(_ board: ReferenceBoard, toMove disc: Disc) -> Int? {
        if let known = seen[board.signs] { return known }
        visited += 1
        if visited > limit { return nil }
        var best: Int?
        for column in [3, 2, 4, 1, 5, 0, 6] {
            var next = board
            guard next.drop(disc, column) != nil else { continue }
            if next.hasLine(through: column) {
                best = 1
            } else {
                guard let theirs = outcome(next, toMove: disc.other) else { return nil }
                best = max(best ?? -1, -theirs)
            }
            if best == 1 { break }
        }
        let outcome = best ?? 0
        seen[board.signs] = outcome
        return outcome
    }
}
