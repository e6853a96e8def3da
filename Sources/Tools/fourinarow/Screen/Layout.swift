import FourInARow
import Terminal

/// The places of everything on a screen of one size.
///
/// A small terminal shows the board first, with a row of text above the keys. More rows add, in this order: the input
/// line, the title, and more rows of text. More columns widen the panel beside the board. A code for guests takes the
/// place beside the board, or else rows below it.
struct Layout: Hashable {
    /// On a smaller terminal, only a sentence that says so is drawn.
    static let least = TerminalSize(
        columns: BoardForm.flat.size.columns, rows: BoardForm.flat.size.rows + leastTextRows)
    /// From this size on, the board is drawn large.
    private static let large = TerminalSize(columns: 100, rows: 34)
    private static let mostLined = TerminalSize(columns: 100, rows: 33)
    private static let mostLarge = TerminalSize(columns: 120, rows: 42)
    /// The table's next step, and the keys.
    private static let leastTextRows = 2
    /// From this number of columns on, the names beside the board can be told apart.
    private static let leastPanelColumns = 16
    /// From this number of rows on, the lobby has blank rows between its parts.
    private static let roomyRows = 16

    /// The area that is drawn on, in the middle of the terminal.
    let frame: CellArea
    let board: BoardLayout
    /// The area beside the board, with the players and the chat; nil on a narrow terminal.
    let panel: CellArea?
    /// Where the code for guests is, if one is shown.
    let code: CodeLayout?
    /// Whether there is a row for the title of a table.
    let hasTitle: Bool
    /// Whether a line separates the title of a table from the board.
    let hasTitleRule: Bool
    /// The row where a line is typed, or where warnings and broken transports are shown. The row of the keys on a
    /// terminal that has no other.
    let lineRow: Int

    /// Creates the layout, or returns nil if the terminal is too small.
    init?(_ size: TerminalSize, code: CodeShape? = nil) {
        guard size.holds(Self.least) else { return nil }
        // The title matters more than lines between the cells.
        let lined = TerminalSize(
            columns: BoardForm.lined.size.columns, rows: BoardForm.lined.size.rows + Self.leastTextRows + 2)
        let form: BoardForm = size.holds(Self.large) ? .large : size.holds(lined) ? .lined : .flat
        let most = form == .large ? Self.mostLarge : Self.mostLined
        var used = TerminalSize(
            columns: min(size.columns, most.columns), rows: min(size.rows, most.rows))
        if let rows = code?.rows(below: form, columns: used.columns), rows <= size.rows {
            used.rows = max(used.rows, rows)
        }
        frame = CellArea(
            column: (size.columns - used.columns) / 2, row: (size.rows - used.rows) / 2,
            columns: used.columns, rows: used.rows)
        let free = used.rows - form.size.rows - Self.leastTextRows
        lineRow = frame.rows.upperBound - (free >= 1 ? 2 : 1)
        hasTitle = free >= 2
        hasTitleRule = free >= 4
        board = BoardLayout(
            origin: CellPosition(
                column: frame.origin.column + min(used.columns - form.size.columns, 2),
                row: frame.origin.row + (hasTitleRule ? 2 : hasTitle ? 1 : 0)), form: form)
        let panelLeft = board.grid.columns.upperBound + 3
        let panelColumns = frame.columns.upperBound - 1 - panelLeft
        let panel =
            panelColumns < Self.leastPanelColumns
            ? nil
            : CellArea(
                column: panelLeft, row: board.origin.row, columns: panelColumns,
                rows: board.labelRow - board.origin.row)
        let place = code.flatMap { [frame, board] in CodeLayout($0, frame: frame, board: board) }
        self.code = place
        // If the code leaves no room there, the title says who plays.
        self.panel = place?.isBeside == true ? panel.flatMap { place?.rest(of: $0) } : panel
    }

    /// The columns that stay free on both sides of text.
    static func margin(of columns: Int, beside grid: TerminalSize) -> Int {
        columns - grid.columns < 2 ? 0 : 1
    }

    private var margin: Int { Self.margin(of: frame.size.columns, beside: board.grid.size) }
    var left: Int { frame.origin.column + margin }
    /// The number of columns that text may take in a row.
    var width: Int { frame.size.columns - 2 * margin }
    /// The number of columns that text may take in a row below the board.
    var textColumns: Int { code?.isBeside == true ? board.grid.columns.upperBound + 1 - left : width }
    var top: Int { frame.origin.row }
    var footerRow: Int { frame.rows.upperBound - 1 }

    // MARK: At a table

    /// The row with the table's next step, with a blank row above it if there is room.
    var headlineRow: Int {
        let first = board.labelRow + 1
        return min(lineRow, code?.end ?? lineRow) - first >= 4 ? first + 1 : first
    }
    /// The most rows that the headline may take. It leaves fewer rows for the notices below.
    var mostHeadlines: Int { max(min(lineRow, code?.end ?? lineRow) - headlineRow, 1) }
    /// Whether notices take the input line while it is empty, because there is little other room.
    var lendsLineRow: Bool { lineRow - headlineRow < 3 }

    // MARK: In the lobby

    /// Whether the lobby has a line below its title, and blank rows.
    var isRoomy: Bool { frame.size.rows >= Self.roomyRows }
    /// The row with the heading above the tables nearby.
    var listHeadingRow: Int { top + (isRoomy ? 2 : 1) }
    /// The row in the lobby where warnings and broken transports are shown.
    var lobbyLineRow: Int { footerRow - 1 }
    var lobbyNotices: Range<Int> { lobbyLineRow - (isRoomy ? 3 : 2)..<lobbyLineRow }
    /// The area where the tables nearby are listed.
    var list: CellArea {
        let gap = isRoomy ? 1 : 0
        let first = listHeadingRow + 1 + gap
        return CellArea(
            column: left, row: first, columns: width, rows: lobbyNotices.lowerBound - gap - first)
    }

    /// Returns the index of the first table to list, so that the chosen table is among those listed.
    func firstListed(_ count: Int, chosen: Int) -> Int {
        let rows = list.size.rows
        return count <= rows ? 0 : min(max(chosen - rows / 2, 0), count - rows)
    }
}

/// The room that a board takes.
enum BoardForm: Hashable {
    /// Cells of one row, without lines between the rows.
    case flat
    /// Cells of one row, with a line below each.
    case lined
    /// Cells of three rows.
    case large

    /// The size of the inside of a cell, in cells of the terminal.
    var inner: TerminalSize {
        self == .large ? TerminalSize(columns: 7, rows: 3) : TerminalSize(columns: 3, rows: 1)
    }
    /// The number of rows from one cell to the cell below it.
    var rowStep: Int { inner.rows + (self == .flat ? 0 : 1) }
    /// The size of the grid.
    var grid: TerminalSize {
        TerminalSize(
            columns: Board.columns * (inner.columns + 1) + 1,
            rows: Board.rows * rowStep + (self == .flat ? 2 : 1))
    }
    /// The size with the row above the grid and the numbers below it.
    var size: TerminalSize { TerminalSize(columns: grid.columns, rows: grid.rows + 2) }
}

/// The places of the board's cells.
struct BoardLayout: Hashable {
    /// The beginning of the row above the grid, where a disc waits to be dropped.
    let origin: CellPosition
    let form: BoardForm

    var cursorRow: Int { origin.row }
    var grid: CellArea {
        CellArea(
            column: origin.column, row: origin.row + 1, columns: form.grid.columns, rows: form.grid.rows)
    }
    var labelRow: Int { grid.rows.upperBound }

    /// Returns whether a row of the grid, counted from its top, is a line.
    func isLine(_ row: Int) -> Bool {
        form == .flat ? row == 0 || row == form.grid.rows - 1 : row % form.rowStep == 0
    }

    /// Returns the inside of a cell. `row` is counted from the bottom.
    func area(_ column: Column, _ row: Int) -> CellArea {
        CellArea(
            column: grid.origin.column + 1 + column.index * (form.inner.columns + 1),
            row: grid.origin.row + 1 + (Board.rows - 1 - row) * form.rowStep, columns: form.inner.columns,
            rows: form.inner.rows)
    }

    /// Returns the middle of a column.
    func middle(_ column: Column) -> Int { area(column, 0).origin.column + form.inner.columns / 2 }

    /// Returns the column at a position, from the row above the grid down to the numbers below it.
    func column(at position: CellPosition) -> Column? {
        guard cursorRow...labelRow ~= position.row else { return nil }
        return Column.allCases.first { area($0, 0).columns.contains(position.column) }
    }
}
