/// The content of a screen: a grid of cells, and the position of the cursor.
///
/// A program draws a new canvas whenever something has changed, in ``TerminalSession/paint(_:)``, or passes it to a
/// ``Painter``. Drawing never fails: content outside is cut off, and control characters in text have no effect
/// (``CellText``).
public struct Canvas: Hashable, Sendable {
    /// The content of one cell.
    struct Cell: Hashable, Sendable {
        var character: Character = " "
        var style = Style.plain
        /// Two if the character also covers the next cell; zero in that cell.
        var columns = 1
    }

    /// The number of columns and rows.
    public let size: TerminalSize
    /// The position where the terminal shows its cursor; nil, as at first, for no cursor.
    public var cursor: CellPosition?
    private var cells: [Cell]

    /// Creates an empty canvas, of at most ``TerminalSize/most``.
    public init(_ size: TerminalSize) {
        self.size = size.bounded
        cells = Array(repeating: Cell(), count: self.size.columns * self.size.rows)
    }

    /// The rectangle of all cells.
    public var area: CellArea { CellArea(column: 0, row: 0, columns: size.columns, rows: size.rows) }

    /// The text without styles: rows with a line end between them, without the blanks at their ends.
    public var text: String {
        (0..<size.rows).map { row in
            let characters = self.row(row).lazy.filter { $0.columns > 0 }.map(\.character)
            return String(characters.reversed().drop { $0 == " " }.reversed())
        }.joined(separator: "\n")
    }

    /// Returns the cells of a row.
    func row(_ row: Int) -> ArraySlice<Cell> { cells[row * size.columns..<(row + 1) * size.columns] }

    // MARK: Drawing

    /// Writes in one row from `position` on, and returns the number of cells used.
    ///
    /// Uses at most `columns` cells, and none outside of the canvas. Half of a wide character becomes a space.
    @discardableResult
    public mutating func write(
        _ text: some StringProtocol, at position: CellPosition, _ style: Style = .plain,
        columns: Int = .max
    ) -> Int {
        write(CellText(text), at: position, style, columns: columns)
    }

    /// Writes as ``write(_:at:_:columns:)`` does with a string.
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

    /// Fills a rectangle with a character that takes one cell. Instead of a wide character, it uses spaces.
    public mutating func fill(_ area: CellArea, with character: Character, _ style: Style = .plain) {
        var piece = CellText.piece(character)
        if piece.columns > 1 { piece = CellText.piece(" ") }
        for row in area.rows.clamped(to: 0..<size.rows) {
            for column in area.columns.clamped(to: 0..<size.columns) { set(piece, column, row, style) }
        }
    }

    /// Empties a rectangle.
    public mutating func fill(_ area: CellArea, _ style: Style = .plain) { fill(area, with: " ", style) }

    /// Draws the border of a rectangle, and leaves the inside unchanged.
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

    /// Puts all cells of another canvas onto this one, without its cursor.
    public mutating func place(_ other: Canvas, at position: CellPosition) {
        for row in 0..<other.size.rows {
            for (column, cell) in other.row(row).enumerated() where cell.columns > 0 {
                set(
                    CellText.Piece(character: cell.character, columns: cell.columns),
                    position.column + column, position.row + row, cell.style)
            }
        }
    }

    /// Returns the upper left part of the canvas, or all of it if the new size is larger.
    func cut(to size: TerminalSize) -> Canvas {
        guard !size.holds(self.size) else { return self }
        var canvas = Canvas(
            TerminalSize(
                columns: min(size.columns, self.size.columns), rows: min(size.rows, self.size.rows)))
        canvas.place(self, at: CellPosition(column: 0, row: 0))
        if let cursor, canvas.area.contains(cursor) { canvas.cursor = cursor }
        return canvas
    }

    /// Puts a character into its one or two cells. If it covers half of a wide character, the other half becomes blank.
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
