/// How many cells a terminal shows.
public struct TerminalSize: Hashable, Sendable {
    /// Side by side.
    public var columns: Int
    /// One below the other.
    public var rows: Int

    /// A size in cells.
    public init(columns: Int, rows: Int) {
        self.columns = columns
        self.rows = rows
    }

    /// The most cells that are drawn on. A terminal may claim any size, and every screen has a cell for each place: of a larger one the
    /// upper left part is used.
    public static let most = TerminalSize(columns: 640, rows: 256)

    /// At least nothing, and at most `most`.
    var bounded: TerminalSize {
        TerminalSize(
            columns: min(max(columns, 0), Self.most.columns), rows: min(max(rows, 0), Self.most.rows))
    }

    /// Whether a screen of that size fits in.
    public func holds(_ needed: TerminalSize) -> Bool { columns >= needed.columns && rows >= needed.rows }
}
