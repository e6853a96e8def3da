/// Rows of cells in aligned columns.
struct TextTable {
    /// The side of its column at which a cell stands.
    enum Side {
        case left
        case right
    }

    private let sides: [Side]
    private var rows: [[Line]]

    /// Creates a table with these headings above its columns.
    init(_ heads: [(String, Side)]) {
        sides = heads.map(\.1)
        rows = [heads.map { Line($0.0, .faint) }]
    }

    /// Adds a row with one cell for each column.
    mutating func add(_ cells: [Line]) { rows.append(cells) }

    /// The headings and the rows, with each column as wide as its widest cell; only the headings if there are no rows.
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
