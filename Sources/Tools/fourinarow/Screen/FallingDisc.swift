import FourInARow
import NighCore

/// A disc that falls to the cell it was dropped into.
struct FallingDisc: Hashable {
    let disc: Disc
    let cell: Cell
    let start: Moment

    /// The nanoseconds that a disc takes to the lowest row. It reaches higher rows sooner.
    private static let longestFall = 250_000_000.0

    /// The number of rows to fall, from the highest row.
    private var distance: Int { Board.rows - 1 - cell.row }

    /// Returns when the disc has fallen this many rows. It accelerates, as falling things do.
    private func moment(rows: Int) -> Moment {
        let share = (Double(rows) / Double(Board.rows - 1)).squareRoot()
        return start + .init(nanoseconds: Int64(share * Self.longestFall))
    }

    /// Returns the row in which the disc is seen, counted from the bottom, or nil once it lies in its cell.
    func row(at now: Moment) -> Int? {
        guard now < moment(rows: distance) else { return nil }
        let fallen = (0..<distance).last { moment(rows: $0) <= now } ?? 0
        return Board.rows - 1 - fallen
    }

    /// Returns when the disc is next seen in another row.
    func nextChange(after now: Moment) -> Moment? {
        (0..<distance).lazy.map { moment(rows: $0 + 1) }.first { now < $0 }
    }
}
