/// Rows of cells that stand below each other.
struct TextTable {
    /// At which side of its column a cell stands.
    enum Side {
        case left
        case right
    }

    private let sides: [Side]
    private var rows: [[Line]]

    /// A table with these heads above its columns.
    init(_ heads: [(String, Side)]) {
        sides = heads.map(\.1)
        rows = [heads.map { Line($0.0, .faint) }]
    }

    /// Adds a row, a cell for each column.
    mutating func add(_ cells: [Line]) { rows.append(cells) }

    /// The heads and the rows, each column as wide as its widest cell; the heads alone where there are none.
    var lines: [Line] {
        let widths = sides.indices.map { column in rows.map { $0[column].columns }.max() ?? 0 }
        return rows.map { row in
            var line = Line("")
            for (column, cell) in row.enumerated() {
                if column > 0 { line = line + "  " }
                let isLast = column == row.count - 1 && sides[column] == .left
                line =
                    line + (isLast ? cell : cell.padded(to: widths[column], atStart: sides[column] == .right))
            }
            return line
        }
    }
}
