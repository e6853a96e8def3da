import FourInARow
import Terminal

/// Where everything is on a screen of one size.
struct Layout: Hashable {
    /// On a smaller terminal, only a sentence that says so is drawn.
    static let least = TerminalSize(columns: 80, rows: 24)
    /// From this size on, the board is drawn large.
    private static let large = TerminalSize(columns: 100, rows: 34)
    private static let mostSmall = TerminalSize(columns: 100, rows: 33)
    private static let mostLarge = TerminalSize(columns: 120, rows: 42)

    /// The area that is drawn on, in the middle of the terminal.
    let frame: CellArea
    let board: BoardLayout
    /// The area beside the board: who plays, and what they say.
    let panel: CellArea

    /// Creates the layout, or returns nil if the terminal is too small.
    init?(_ size: TerminalSize) {
        guard size.holds(Self.least) else { return nil }
        let isLarge = size.holds(Self.large)
        let most = isLarge ? Self.mostLarge : Self.mostSmall
        let used = TerminalSize(
            columns: min(size.columns, most.columns), rows: min(size.rows, most.rows))
        frame = CellArea(
            column: (size.columns - used.columns) / 2, row: (size.rows - used.rows) / 2,
            columns: used.columns, rows: used.rows)
        let (left, top) = (frame.origin.column, frame.origin.row)
        board = BoardLayout(origin: CellPosition(column: left + 2, row: top + 2), isLarge: isLarge)
        let panelLeft = board.grid.columns.upperBound + 3
        panel = CellArea(
            column: panelLeft, row: top + 2, columns: frame.columns.upperBound - 1 - panelLeft,
            rows: board.labelRow - (top + 2))
    }

    var left: Int { frame.origin.column + 1 }
    /// The number of columns that text may take in a row.
    var width: Int { frame.size.columns - 2 }
    var top: Int { frame.origin.row }
    var footerRow: Int { frame.rows.upperBound - 1 }
    /// The row where a line is typed, or where warnings and broken transports are shown.
    var lineRow: Int { footerRow - 1 }
    /// The row that says what the table is waiting for, with a blank row above it if there is room.
    var headlineRow: Int {
        let first = board.labelRow + 1
        return lineRow - first >= 4 ? first + 1 : first
    }
    /// The most rows that the headline may take. It leaves fewer rows for the notices below.
    var mostHeadlines: Int { lineRow - headlineRow }
    var lobbyNotices: Range<Int> { lineRow - 3..<lineRow }
    /// The area where the tables nearby are listed.
    var list: CellArea {
        CellArea(column: left, row: top + 4, columns: width, rows: lobbyNotices.lowerBound - 1 - (top + 4))
    }

    /// Returns the index of the first table to list, so that the chosen table is among those listed.
    func firstListed(_ count: Int, chosen: Int) -> Int {
        let rows = list.size.rows
        return count <= rows ? 0 : min(max(chosen - rows / 2, 0), count - rows)
    }
}

/// Where the cells of the board are.
struct BoardLayout: Hashable {
    /// The beginning of the row above the grid, where a disc waits to be dropped.
    let origin: CellPosition
    let isLarge: Bool

    /// The size of the inside of a board cell, in cells of the terminal.
    var inner: TerminalSize {
        isLarge ? TerminalSize(columns: 7, rows: 3) : TerminalSize(columns: 3, rows: 1)
    }
    var cursorRow: Int { origin.row }
    var grid: CellArea {
        CellArea(
            column: origin.column, row: origin.row + 1, columns: Board.columns * (inner.columns + 1) + 1,
            rows: Board.rows * (inner.rows + 1) + 1)
    }
    var labelRow: Int { grid.rows.upperBound }

    /// Returns the inside of a cell. `row` is counted from the bottom.
    func area(_ column: Column, _ row: Int) -> CellArea {
        CellArea(
            column: grid.origin.column + 1 + column.index * (inner.columns + 1),
            row: grid.origin.row + 1 + (Board.rows - 1 - row) * (inner.rows + 1), columns: inner.columns,
            rows: inner.rows)
    }

    /// Returns the middle of a column.
    func middle(_ column: Column) -> Int { area(column, 0).origin.column + inner.columns / 2 }

    /// Returns the column at a position, from the row above the grid down to the numbers below it.
    func column(at position: CellPosition) -> Column? {
        guard cursorRow...labelRow ~= position.row else { return nil }
        return Column.allCases.first { area($0, 0).columns.contains(position.column) }
    }
}
