import Guests
import Terminal

/// The room that a code for guests takes: its picture, and the lines with its address and warning.
struct CodeShape: Hashable {
    /// A line of the text.
    struct Line: Hashable {
        var text: CellText
        var isWarning: Bool
    }

    /// The size of the picture; nil if there is none.
    let picture: TerminalSize?
    private let code: GuestCode

    init(_ code: GuestCode, withPicture: Bool) {
        self.code = code
        picture = withPicture && !code.picture.isEmpty ? code.size : nil
    }

    /// Returns the text in lines of at most `columns`.
    func lines(of columns: Int, below hasPicture: Bool, withAlternatives: Bool = false) -> [Line] {
        let address = hasPicture ? code.address : "A phone may open \(code.address)"
        var lines = CellText(address).lines(of: columns)
        if withAlternatives { lines += code.alternatives.flatMap { CellText("or \($0)").lines(of: columns) } }
        return lines.map { Line(text: $0, isWarning: false) }
            + CellText(GuestReception.warning).lines(of: columns).map { Line(text: $0, isWarning: true) }
    }

    /// Returns the rows that a screen `columns` wide needs to show the picture below the board. Nil if there is
    /// room beside it, or none at all.
    func rows(below form: BoardForm, columns: Int) -> Int? {
        guard let picture, picture.columns <= columns,
            min(columns - form.size.columns, 2) + form.grid.columns + 3 + picture.columns > columns
        else { return nil }
        let lines = lines(of: columns - 2 * Layout.margin(of: columns, beside: form.grid), below: true)
        // The title and the line below it, a blank row, the headline, and the keys.
        return form.size.rows + picture.rows + lines.count + 5
    }
}

/// The place of a code for guests on the screen.
struct CodeLayout: Hashable {
    /// The area of the picture; nil if there is none, or no room for it.
    private(set) var picture: CellArea?
    /// Where the text begins.
    private(set) var text: CellPosition
    private(set) var lines: [CodeShape.Line]
    /// Whether the picture is beside the board.
    private(set) var isBeside = false
    /// The first row below the board that the code takes.
    private(set) var end: Int

    /// Finds the best place: beside the board with the text below the picture, beside the board with the text below
    /// both, below the board, or the text alone. Nil if there is room for nothing.
    init?(_ code: CodeShape, frame: CellArea, board: BoardLayout) {
        let footer = frame.rows.upperBound - 1
        let margin = Layout.margin(of: frame.size.columns, beside: board.grid.size)
        let (left, width) = (frame.origin.column + margin, frame.size.columns - 2 * margin)
        let firstFree = board.labelRow + 2
        if let size = code.picture {
            let beside = board.grid.columns.upperBound + 3
            let panelColumns = frame.columns.upperBound - 1 - beside
            // Two rows for the players, and a blank one.
            let top = board.origin.row + 3
            for withAlternatives in [true, false] where panelColumns >= size.columns {
                lines = code.lines(of: panelColumns, below: true, withAlternatives: withAlternatives)
                guard top + size.rows + lines.count <= footer else { continue }
                picture = CellArea(column: beside, row: top, columns: size.columns, rows: size.rows)
                text = CellPosition(column: beside, row: top + size.rows)
                (isBeside, end) = (true, footer)
                return
            }
            lines = code.lines(of: width, below: true)
            end = footer - lines.count
            text = CellPosition(column: left, row: end)
            let row = end - size.rows
            if beside + size.columns <= frame.columns.upperBound, row > frame.origin.row {
                picture = CellArea(column: beside, row: row, columns: size.columns, rows: size.rows)
                isBeside = true
                return
            }
            if size.columns <= frame.size.columns, row >= firstFree {
                let column = frame.origin.column + (frame.size.columns - size.columns) / 2
                picture = CellArea(column: column, row: row, columns: size.columns, rows: size.rows)
                end = row
                return
            }
        }
        lines = Array(code.lines(of: width, below: false).prefix(max(footer - firstFree, 0)))
        end = footer - lines.count
        text = CellPosition(column: left, row: end)
        if lines.isEmpty { return nil }
    }

    /// Returns the part of the panel beside the board that the code leaves free; nil if that is too little for the
    /// players.
    func rest(of panel: CellArea) -> CellArea? {
        guard let picture, picture.origin.row >= panel.origin.row + 3 else { return nil }
        return CellArea(
            column: panel.origin.column, row: panel.origin.row, columns: panel.size.columns,
            rows: min(picture.origin.row - 1 - panel.origin.row, panel.size.rows))
    }
}
