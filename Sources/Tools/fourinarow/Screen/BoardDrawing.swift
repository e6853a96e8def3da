import FourInARow
import Terminal

/// Draws the board with its discs, and the cursor above it.
struct BoardDrawing {
    /// How a cell is marked. Brackets show the mark even without colour.
    enum Mark {
        case none, last, winning
    }

    let layout: BoardLayout
    let glyphs: Glyphs

    func drawGrid(into canvas: inout Canvas) {
        let grid = layout.grid
        canvas.fill(grid, Palette.grid)
        for row in 0..<grid.size.rows {
            let isLine = layout.isLine(row)
            for column in 0..<grid.size.columns {
                let isEdge = column % (layout.form.inner.columns + 1) == 0
                guard isLine || isEdge else { continue }
                var character = isLine ? glyphs.across : glyphs.down
                if isLine, isEdge {
                    character =
                        glyphs.crossings[Self.part(row, grid.size.rows)][Self.part(column, grid.size.columns)]
                }
                canvas.fill(
                    CellArea(
                        column: grid.origin.column + column, row: grid.origin.row + row, columns: 1, rows: 1),
                    with: character, Palette.grid)
            }
        }
    }

    /// Returns 0 for the first index, 2 for the last, and 1 for those between.
    private static func part(_ index: Int, _ count: Int) -> Int {
        index == 0 ? 0 : index == count - 1 ? 2 : 1
    }

    func drawLabels(chosen: Column?, into canvas: inout Canvas) {
        for column in Column.allCases {
            canvas.write(
                String(column.index + 1),
                at: CellPosition(column: layout.middle(column), row: layout.labelRow),
                column == chosen ? .bold : Palette.quiet)
        }
    }

    /// Draws above the chosen column: the disc that would be dropped, or a cursor.
    func drawCursor(_ column: Column, _ disc: Disc?, into canvas: inout Canvas) {
        let (character, style) =
            disc.map { (glyphs.disc($0), Palette.name($0)) } ?? (glyphs.cursor, Palette.quiet)
        canvas.write(
            String(character), at: CellPosition(column: layout.middle(column), row: layout.cursorRow), style)
    }

    func draw(_ disc: Disc, _ column: Column, _ row: Int, _ mark: Mark, into canvas: inout Canvas) {
        draw(picture(of: disc), Palette.disc(disc), column, row, mark, into: &canvas)
    }

    func drawPending(_ disc: Disc, _ column: Column, _ row: Int, into canvas: inout Canvas) {
        let whole = layout.form == .large ? [" ", String(glyphs.pending), " "] : [String(glyphs.pending)]
        draw(whole, Palette.pending(disc), column, row, .none, into: &canvas)
    }

    private func draw(
        _ picture: [String], _ style: Style, _ column: Column, _ row: Int, _ mark: Mark,
        into canvas: inout Canvas
    ) {
        let area = layout.area(column, row)
        for (line, text) in picture.enumerated() {
            let left = area.origin.column + (area.size.columns - text.count) / 2
            canvas.write(text, at: CellPosition(column: left, row: area.origin.row + line), style)
        }
        let (brackets, markStyle) =
            switch mark {
            case .none: ([" ", " "], style)
            case .last: (["(", ")"], Palette.mark)
            case .winning: (["[", "]"], Palette.winningMark)
            }
        let middle = area.origin.row + area.size.rows / 2
        canvas.write(brackets[0], at: CellPosition(column: area.columns.lowerBound, row: middle), markStyle)
        canvas.write(
            brackets[1], at: CellPosition(column: area.columns.upperBound - 1, row: middle), markStyle)
    }

    /// Returns a filled disc for red and a hollow one for yellow; in ASCII, a cross and a ring.
    private func picture(of disc: Disc) -> [String] {
        guard layout.form == .large else { return [String(glyphs.disc(disc))] }
        return switch (disc, glyphs.isUnicode) {
        case (.red, true): ["▄███▄", "█████", "▀███▀"]
        case (.yellow, true): ["▄▀▀▀▄", "█   █", "▀▄▄▄▀"]
        case (.red, false): ["\\ /", "X", "/ \\"]
        case (.yellow, false): ["/---\\", "|   |", "\\---/"]
        }
    }
}
