/// What bitboards know of lines: each cell is one bit, column by column and each from below, with one bit above
/// every column that stays empty. So no line can run from one column's top into the next column's foot.
enum Lines {
    /// From a bit to its neighbour on the right.
    static let columnStride = Board.rows + 1

    /// From a bit to its neighbour above, below right, right and above right.
    static let strides = (up: 1, downRight: columnStride - 1, right: columnStride, upRight: columnStride + 1)

    /// The lowest cell of every column.
    static let bottom: UInt64 = (0..<Board.columns).reduce(0) { $0 | 1 << UInt64($1 * columnStride) }

    /// All 42 cells.
    static let cells: UInt64 = bottom * (1 << UInt64(Board.rows) - 1)

    /// Whether four of these cells lie in one line.
    static func contains(_ bits: UInt64) -> Bool {
        starts(bits, strides.up) != 0 || starts(bits, strides.right) != 0
            || starts(bits, strides.upRight) != 0 || starts(bits, strides.downRight) != 0
    }

    /// Those of these cells that lie in a line of four or more of them.
    static func all(in bits: UInt64) -> UInt64 {
        spread(bits, strides.up) | spread(bits, strides.right) | spread(bits, strides.upRight)
            | spread(bits, strides.downRight)
    }

    /// The first cells of all lines of four that run this way.
    private static func starts(_ bits: UInt64, _ stride: Int) -> UInt64 {
        let pairs = bits & (bits &>> UInt64(stride))
        return pairs & (pairs &>> UInt64(2 * stride))
    }

    private static func spread(_ bits: UInt64, _ stride: Int) -> UInt64 {
        let starts = starts(bits, stride)
        let pairs = starts | (starts &<< UInt64(stride))
        return pairs | (pairs &<< UInt64(2 * stride))
    }
}
