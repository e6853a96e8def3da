/// One of the 42 cells of the board. Every value is on the board.
public struct Cell: Hashable, Sendable, Comparable, CaseIterable, CustomStringConvertible {
    /// The column of the cell.
    public let column: Column
    /// The row of the cell, 0 to 5, counted from the bottom.
    public let row: Int

    /// Creates the cell in this row of the column, or returns nil if the board has no such row.
    public init?(column: Column, row: Int) {
        guard (0..<Board.rows).contains(row) else { return nil }
        self.column = column
        self.row = row
    }

    private init(_ column: Column, within row: Int) {
        self.column = column
        self.row = row
    }

    /// Creates the cell of a bit in the bit order of `Lines`.
    init(bit: Int) {
        self.init(Column.allCases[bit / Lines.columnStride], within: bit % Lines.columnStride)
    }

    /// The cell's bit number in the bit order of `Lines`.
    var bit: Int { column.index * Lines.columnStride + row }

    /// All 42 cells, column by column, each from the bottom up.
    public static let allCases: [Cell] = Column.allCases.flatMap { column in
        (0..<Board.rows).map { Cell(column, within: $0) }
    }

    /// Orders cells column by column, each from the bottom up.
    public static func < (one: Cell, other: Cell) -> Bool { one.bit < other.bit }

    /// The cell as players write it: the column's letter and the row counted from 1, for example "d1".
    public var description: String { "\(column)\(row + 1)" }
}
