/// One of the seven columns that a disc can be dropped into. Every value is a column of the board.
public struct Column: Hashable, Sendable, Comparable, CaseIterable, CustomStringConvertible {
    /// The number of the column, 0 to 6, counted from the left.
    public let index: Int

    /// Creates the column with this number, or returns nil if the board has no such column.
    public init?(_ index: Int) {
        guard (0..<Board.columns).contains(index) else { return nil }
        self.index = index
    }

    private init(within index: Int) { self.index = index }

    /// All seven columns, from left to right.
    public static let allCases: [Column] = (0..<Board.columns).map { Column(within: $0) }

    /// Orders columns from left to right.
    public static func < (one: Column, other: Column) -> Bool { one.index < other.index }

    /// The letter that players use for the column, "a" to "g".
    public var description: String { String(UnicodeScalar(UInt8(ascii: "a") + UInt8(index))) }
}
