import FourInARow
import Terminal

/// Where everything is on a screen of a certain size.
struct Layout: Hashable {
    /// Below that nothing is drawn but a sentence that says so.
    static let least = TerminalSize(columns: 80, rows: 24)
    /// From here on the board is drawn large.
    private static let large = TerminalSize(columns: 100, rows: 34)
    private static let mostSmall = TerminalSize(columns: 100, rows: 33)
    private static let mostLarge = TerminalSize(columns: 120, rows: 42)

    /// What is drawn on, in the middle of the terminal.
    let frame: CellArea
    let board: BoardLayout
    /// Beside the board: who plays, and what they say.
    let panel: CellArea

    /// Nil for a terminal that is too small.
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
    /// How much of a row text may take.
    var width: Int { frame.size.columns - 2 }
    var top: Int { frame.origin.row }
    var footerRow: Int { frame.rows.upperBound - 1 }
    /// Where a line is typed, or what does not work is told.
    var lineRow: Int { footerRow - 1 }
    /// What the table is waiting for: with a blank row above it where there is room.
    var headlineRow: Int {
        let first = board.labelRow + 1
        return lineRow - first >= 4 ? first + 1 : first
    }
    /// How many rows it may take, at the cost of what is said below.
    var mostHeadlines: Int { lineRow - headlineRow }
    var lobbyNotices: Range<Int> { lineRow - 3..<lineRow }
    /// Where the tables near are listed.
    var list: CellArea {
        CellArea(column: left, row: top + 4, columns: width, rows: lobbyNotices.lowerBound - 1 - (top + 4))
    }

    /// The first of the tables that are listed, so that the chosen one is among them.
    func firstListed(_ count: Int, chosen: Int) -> Int {
        let rows = list.size.rows
        return count <= rows ? 0 : min(max(chosen - rows / 2, 0), count - rows)
    }
}

/// Where the cells of the board are.
struct BoardLayout: Hashable {
    /// The row above the grid, where a disc waits to be dropped, begins here.
    let origin: CellPosition
    let isLarge: Bool

    /// Cells of the terminal inside a cell of the board.
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

    /// The inside of a cell; its row is counted from below.
    func area(_ column: Column, _ row: Int) -> CellArea {
        CellArea(
            column: grid.origin.column + 1 + column.index * (inner.columns + 1),
            row: grid.origin.row + 1 + (Board.rows - 1 - row) * (inner.rows + 1), columns: inner.columns,
            rows: inner.rows)
    }

    /// The middle of a column.
    func middle(_ column: Column) -> Int { area(column, 0).origin.column + inner.columns / 2 }

    /// The column at a place: from the row above the grid down to the numbers below it.
    func column(at position: CellPosition) -> Column? {
        guard cursorRow...labelRow ~= position.row else { return nil }
        return Column.allCases.first { area($0, 0).columns.contains(position.column) }
    }
}
