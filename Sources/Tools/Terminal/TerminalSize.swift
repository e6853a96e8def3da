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

    /// Whether a screen of that size fits in.
    public func holds(_ needed: TerminalSize) -> Bool { columns >= needed.columns && rows >= needed.rows }
}
