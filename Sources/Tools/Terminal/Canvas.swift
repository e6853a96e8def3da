/// A screen as it should look: a grid of cells, and where the cursor is.
///
/// Programs draw a new one whenever something has changed, in ``TerminalSession/paint(_:)``, or hand it to a ``Painter``. Drawing
/// never fails: what lies outside is cut off, and no text can do more than be seen (``CellText``).
public struct Canvas: Hashable, Sendable {
    /// What stands in one place.
    struct Cell: Hashable, Sendable {
        var character: Character = " "
        var style = Style.plain
        /// Two where the next cell is covered as well; none in that one.
        var columns = 1
    }

    /// How many cells there are.
    public let size: TerminalSize
    /// Where the terminal shows its cursor; nil for nowhere, as at first.
    public var cursor: CellPosition?
    private var cells: [Cell]

    /// An empty screen, of at most ``TerminalSize/most``.
    public init(_ size: TerminalSize) {
        self.size = size.bounded
        cells = Array(repeating: Cell(), count: self.size.columns * self.size.rows)
    }

    /// All of it.
    public var area: CellArea { CellArea(column: 0, row: 0, columns: size.columns, rows: size.rows) }

    /// What there is to read, without styles: rows with a line end between them, blanks at their ends left out.
    public var text: String {
        (0..<size.rows).map { row in
            let characters = self.row(row).lazy.filter { $0.columns > 0 }.map(\.character)
            return String(characters.reversed().drop { $0 == " " }.reversed())
        }.joined(separator: "\n")
    }

    /// The cells of a row.
    func row(_ row: Int) -> ArraySlice<Cell> { cells[row * size.columns..<(row + 1) * size.columns] }

    // MARK: Drawing

    /// Writes in one row from `position` on, and says how many cells that took. At most `columns` of them are used, and none outside of
    /// the screen; half a wide character is a space.
    @discardableResult
    public mutating func write(
        _ text: some StringProtocol, at position: CellPosition, _ style: Style = .plain,
        columns: Int = .max
    ) -> Int {
        write(CellText(text), at: position, style, columns: columns)
    }

    /// As ``write(_:at:_:columns:)`` with a string does.
    @discardableResult
    public mutating func write(
        _ text: CellText, at position: CellPosition, _ style: Style = .plain, columns: Int = .max
    ) -> Int {
        var taken = 0
        for piece in text.pieces {
            guard taken < columns else { break }
            if taken + piece.columns > columns {
                set(CellText.piece(" "), position.column + taken, position.row, style)
                return columns
            }
            set(piece, position.column + taken, position.row, style)
            taken += piece.columns
        }
        return taken
    }

    /// Fills a rectangle with a character that takes one cell; with spaces instead of a wide one.
    public mutating func fill(_ area: CellArea, with character: Character, _ style: Style = .plain) {
        var piece = CellText.piece(character)
        if piece.columns > 1 { piece = CellText.piece(" ") }
        for row in area.rows.clamped(to: 0..<size.rows) {
            for column in area.columns.clamped(to: 0..<size.columns) { set(piece, column, row, style) }
        }
    }

    /// Empties a rectangle.
    public mutating func fill(_ area: CellArea, _ style: Style = .plain) { fill(area, with: " ", style) }

    /// Draws along the border of a rectangle; what is inside stays.
    public mutating func box(_ area: CellArea, _ lines: LineKind = .light, _ style: Style = .plain) {
        guard area.size.columns > 1, area.size.rows > 1 else { return }
        let (top, bottom) = (area.rows.lowerBound, area.rows.upperBound - 1)
        let (left, right) = (area.columns.lowerBound, area.columns.upperBound - 1)
        line(from: CellPosition(column: left, row: top), columns: area.size.columns, lines, style)
        line(from: CellPosition(column: left, row: bottom), columns: area.size.columns, lines, style)
        line(from: CellPosition(column: left, row: top), rows: area.size.rows, lines, style)
        line(from: CellPosition(column: right, row: top), rows: area.size.rows, lines, style)
        let corners = lines.corners.map(CellText.piece)
        set(corners[0], left, top, style)
        set(corners[1], right, top, style)
        set(corners[2], left, bottom, style)
        set(corners[3], right, bottom, style)
    }

    /// Draws a line to the right.
    public mutating func line(
        from start: CellPosition, columns: Int, _ lines: LineKind = .light, _ style: Style = .plain
    ) {
        fill(
            CellArea(column: start.column, row: start.row, columns: columns, rows: 1), with: lines.across,
            style)
    }

    /// Draws a line downwards.
    public mutating func line(
        from start: CellPosition, rows: Int, _ lines: LineKind = .light, _ style: Style = .plain
    ) {
        fill(
            CellArea(column: start.column, row: start.row, columns: 1, rows: rows), with: lines.down, style)
    }

    /// Puts another canvas onto this one, all its cells but not its cursor.
    public mutating func place(_ other: Canvas, at position: CellPosition) {
        for row in 0..<other.size.rows {
            for (column, cell) in other.row(row).enumerated() where cell.columns > 0 {
                set(
                    CellText.Piece(character: cell.character, columns: cell.columns),
                    position.column + column, position.row + row, cell.style)
            }
        }
    }

    /// The upper left part of it, or all of it where the new size is larger.
    func cut(to size: TerminalSize) -> Canvas {
        guard !size.holds(self.size) else { return self }
        var canvas = Canvas(
            TerminalSize(
                columns: min(size.columns, self.size.columns), rows: min(size.rows, self.size.rows)))
        canvas.place(self, at: CellPosition(column: 0, row: 0))
        if let cursor, canvas.area.contains(cursor) { canvas.cursor = cursor }
        return canvas
    }

    /// Puts a character into its one or two cells, and blanks what is left of wide ones it covers half of.
    private mutating func set(_ piece: CellText.Piece, _ column: Int, _ row: Int, _ style: Style) {
        guard 0..<size.rows ~= row, column < size.columns, column + piece.columns > 0 else { return }
        guard column >= 0, column + piece.columns <= size.columns else {
            return set(CellText.piece(" "), max(column, 0), row, style)
        }
        let index = row * size.columns + column
        if cells[index].columns == 0 { blank(index - 1) }
        let last = index + piece.columns - 1
        if cells[last].columns == 2 { blank(last + 1) }
        cells[index] = Cell(character: piece.character, style: style, columns: piece.columns)
        if piece.columns == 2 { cells[last] = Cell(character: " ", style: style, columns: 0) }
    }

    private mutating func blank(_ index: Int) {
        cells[index].character = " "
        cells[index].columns = 1
    }
}
