import FourInARow

/// Finds the outcome of a position by trying everything, with no more wit than to remember what it has seen.
///
/// `check` holds the real solver to this one. It shares no code with it, nor with the board.
struct SlowSolver {
    private var visited = 0
    private var seen: [[UInt8]: Int] = [:]
    private let limit: Int

    /// A solver that gives up after visiting so many positions.
    init(limit: Int) { self.limit = limit }

    /// 1, 0 or -1 for a win, a draw or a loss of whoever moves next; nil if it has given up.
    mutating func outcome(_ board: SlowBoard, toMove disc: Disc) -> Int? {
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
