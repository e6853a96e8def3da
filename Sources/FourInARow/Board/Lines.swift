/// Finds lines of four on bitboards.
///
/// Each cell is one bit, column by column, each from the bottom up. The bit above every column is always zero, so that
/// no line can run from the top of one column into the bottom of the next.
enum Lines {
    /// The distance from a bit to its neighbour on the right.
    static let columnStride = Board.rows + 1

    /// The distances from a bit to its neighbours above, below right, right and above right.
    static let strides = (up: 1, downRight: columnStride - 1, right: columnStride, upRight: columnStride + 1)

    /// The lowest cell of every column.
    static let bottom: UInt64 = (0..<Board.columns).reduce(0) { $0 | 1 << UInt64($1 * columnStride) }

    /// All 42 cells.
    static let cells: UInt64 = bottom * (1 << UInt64(Board.rows) - 1)

    /// Returns whether four of these cells form a line.
    static func contains(_ bits: UInt64) -> Bool {
        starts(bits, strides.up) != 0 || starts(bits, strides.right) != 0
            || starts(bits, strides.upRight) != 0 || starts(bits, strides.downRight) != 0
    }

    /// Returns the cells that are part of a line of four or more.
    static func all(in bits: UInt64) -> UInt64 {
        spread(bits, strides.up) | spread(bits, strides.right) | spread(bits, strides.upRight)
            | spread(bits, strides.downRight)
    }

    /// Returns the first cell of every line of four in this direction.
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
