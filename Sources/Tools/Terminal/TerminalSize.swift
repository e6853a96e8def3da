/// The number of cells that a terminal shows.
public struct TerminalSize: Hashable, Sendable {
    /// The number of columns.
    public var columns: Int
    /// The number of rows.
    public var rows: Int

    /// Creates a size in cells.
    public init(columns: Int, rows: Int) {
        self.columns = columns
        self.rows = rows
    }

    /// The largest size that is drawn on.
    ///
    /// A terminal may report any size, and every screen has a cell for each place. So only the upper left part of a
    /// larger terminal is used.
    public static let most = TerminalSize(columns: 640, rows: 256)

    /// The size, limited to at least nothing and at most `most`.
    var bounded: TerminalSize {
        TerminalSize(
            columns: min(max(columns, 0), Self.most.columns), rows: min(max(rows, 0), Self.most.rows))
    }

    /// Returns whether a screen of that size fits in.
    public func holds(_ needed: TerminalSize) -> Bool { columns >= needed.columns && rows >= needed.rows }
}
