/// One of the seven columns a disc can be dropped into. There is no value that is not a column.
public struct Column: Hashable, Sendable, Comparable, CaseIterable, CustomStringConvertible {
    /// Counted from the left, 0 to 6.
    public let index: Int

    /// The column so many places from the left; nil if the board is not that wide.
    public init?(_ index: Int) {
        guard (0..<Board.columns).contains(index) else { return nil }
        self.index = index
    }

    private init(within index: Int) { self.index = index }

    /// All seven, from left to right.
    public static let allCases: [Column] = (0..<Board.columns).map { Column(within: $0) }

    /// The leftmost is the least.
    public static func < (one: Column, other: Column) -> Bool { one.index < other.index }

    /// The letter players know it by, "a" to "g".
    public var description: String { String(UnicodeScalar(UInt8(ascii: "a") + UInt8(index))) }
}
