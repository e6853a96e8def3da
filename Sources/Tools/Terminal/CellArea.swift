/// The position of a cell. The first cell of a screen is at column 0 of row 0.
public struct CellPosition: Hashable, Sendable {
    /// The column, counted from the left.
    public var column: Int
    /// The row, counted from the top.
    public var row: Int

    /// Creates a position, which may lie outside of a screen.
    public init(column: Int, row: Int) {
        self.column = column
        self.row = row
    }
}

/// A rectangle of cells.
public struct CellArea: Hashable, Sendable {
    /// The upper left cell.
    public var origin: CellPosition
    /// The number of columns and rows. The rectangle is empty if one of them is zero or less.
    public var size: TerminalSize

    /// Creates a rectangle from its upper left cell and its number of columns and rows.
    public init(column: Int, row: Int, columns: Int, rows: Int) {
        origin = CellPosition(column: column, row: row)
        size = TerminalSize(columns: columns, rows: rows)
    }

    /// The columns that the rectangle covers.
    public var columns: Range<Int> { origin.column..<origin.column + max(size.columns, 0) }
    /// The rows that the rectangle covers.
    public var rows: Range<Int> { origin.row..<origin.row + max(size.rows, 0) }

    /// Returns whether a cell, for example one that was clicked, lies in the rectangle.
    public func contains(_ position: CellPosition) -> Bool {
        columns.contains(position.column) && rows.contains(position.row)
    }

    /// The rectangle without its outermost cells: the inside of a box around it.
    public var inside: CellArea {
        CellArea(
            column: origin.column + 1, row: origin.row + 1, columns: size.columns - 2, rows: size.rows - 2)
    }
}
