import FourInARow
import NighCore

/// A disc on its way down to the cell it was dropped into.
struct FallingDisc: Hashable {
    let disc: Disc
    let cell: Cell
    let start: Moment

    /// Down to the lowest row; higher ones are reached sooner.
    private static let longest = 250_000_000.0

    /// Rows to fall, from the highest one.
    private var distance: Int { Board.rows - 1 - cell.row }

    /// When it has fallen so many rows: it gets faster, as things that fall do.
    private func moment(rows: Int) -> Moment {
        let share = (Double(rows) / Double(Board.rows - 1)).squareRoot()
        return start + .init(nanoseconds: Int64(share * Self.longest))
    }

    /// The row it is seen in, counted from below; nil once it lies where it belongs.
    func row(at now: Moment) -> Int? {
        guard now < moment(rows: distance) else { return nil }
        let fallen = (0..<distance).last { moment(rows: $0) <= now } ?? 0
        return Board.rows - 1 - fallen
    }

    /// When it is seen somewhere else.
    func nextChange(after now: Moment) -> Moment? {
        (0..<distance).lazy.map { moment(rows: $0 + 1) }.first { now < $0 }
    }
}
