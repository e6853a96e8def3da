/// One of the 42 places for a disc. There is no value that is not on the board.
public struct Cell: Hashable, Sendable, Comparable, CaseIterable, CustomStringConvertible {
    /// The column it is in.
    public let column: Column
    /// Counted from below, 0 to 5.
    public let row: Int

    /// The cell so many places above the ground; nil if the board is not that high.
    public init?(column: Column, row: Int) {
        guard (0..<Board.rows).contains(row) else { return nil }
        self.column = column
        self.row = row
    }

    private init(_ column: Column, within row: Int) {
        self.column = column
        self.row = row
    }

    /// The cell of a bit as `Lines` numbers them.
    init(bit: Int) {
        self.init(Column.allCases[bit / Lines.columnStride], within: bit % Lines.columnStride)
    }

    /// The number of its bit as `Lines` numbers them.
    var bit: Int { column.index * Lines.columnStride + row }

    /// All 42, column by column, each from below.
    public static let allCases: [Cell] = Column.allCases.flatMap { column in
        (0..<Board.rows).map { Cell(column, within: $0) }
    }

    /// Column by column, each from below.
    public static func < (one: Cell, other: Cell) -> Bool { one.bit < other.bit }

    /// As players write it: the column's letter, and the row counted from 1, such as "d1".
    public var description: String { "\(column)\(row + 1)" }
}
