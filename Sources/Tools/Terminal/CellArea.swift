/// Where a cell is; the first of a screen is at column 0 of row 0.
public struct CellPosition: Hashable, Sendable {
    /// Counted from the left.
    public var column: Int
    /// Counted from the top.
    public var row: Int

    /// The cell there. It may lie outside of what a screen holds.
    public init(column: Int, row: Int) {
        self.column = column
        self.row = row
    }
}

/// A rectangle of cells.
public struct CellArea: Hashable, Sendable {
    /// Its upper left cell.
    public var origin: CellPosition
    /// How far it reaches; empty where a side is zero or less.
    public var size: TerminalSize

    /// The rectangle of this many cells from its upper left one.
    public init(column: Int, row: Int, columns: Int, rows: Int) {
        origin = CellPosition(column: column, row: row)
        size = TerminalSize(columns: columns, rows: rows)
    }

    /// The columns it covers.
    public var columns: Range<Int> { origin.column..<origin.column + max(size.columns, 0) }
    /// The rows it covers.
    public var rows: Range<Int> { origin.row..<origin.row + max(size.rows, 0) }

    /// Whether a cell lies in it, as one that was clicked may.
    public func contains(_ position: CellPosition) -> Bool {
        columns.contains(position.column) && rows.contains(position.row)
    }

    /// The same without its outermost cells: what a box around it leaves.
    public var inside: CellArea {
        CellArea(
            column: origin.column + 1, row: origin.row + 1, columns: size.columns - 2, rows: size.rows - 2)
    }
}
