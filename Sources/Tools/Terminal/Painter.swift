/// Brings a terminal from its present content to the wanted one, with few bytes.
///
/// A value without I/O. The caller passes in one canvas after the other, and writes all returned bytes to the terminal,
/// in order. Nobody else may write there meanwhile.
public struct Painter: Sendable {
    /// The present content of the terminal; nil if it is not known.
    private var shown: Screen?
    private var pen: Pen?
    /// Where the next character would go; nil if terminals may disagree.
    private var place: CellPosition?
    private var isCursorVisible: Bool?
    private let traits: TerminalTraits
    private let isSynchronized: Bool

    /// Cells that already look right are written again if that is not longer than moving the cursor over them.
    private static let widestGap = 3
    /// This many blanks or more at the end of a row are erased instead of written.
    private static let fewestErased = 4
    /// The number of cells by which a character may reach further than it should. These cells are written again after
    /// it.
    private static let mostExtraCells = 2

    /// Creates a painter for a terminal with these traits.
    ///
    /// With `isSynchronized`, it tells the terminal where a painting begins and ends, so that nobody sees half of one.
    /// Terminals that do not know this ignore it.
    public init(_ traits: TerminalTraits, isSynchronized: Bool = true) {
        self.traits = traits
        self.isSynchronized = isSynchronized
    }

    /// Makes the next painting draw everything, because somebody else has written to the terminal or its size has
    /// changed.
    public mutating func forget() {
        shown = nil
        pen = nil
        place = nil
        isCursorVisible = nil
    }

    /// Returns the bytes that make the terminal show `canvas`, or none if it shows it already. The canvas must not be
    /// larger than the terminal.
    public mutating func paint(_ canvas: Canvas) -> [UInt8] {
        let next = Screen(canvas, traits)
        var bytes: [UInt8] = []
        if shown?.size != next.size { forget() }
        if shown != next {
            show(cursor: false, &bytes)
            let before = shown ?? clear(next.size, &bytes)
            for row in 0..<next.size.rows { paint(row, from: before, to: next, &bytes) }
            shown = next
        }
        if let cursor = canvas.cursor, canvas.area.contains(cursor) {
            move(to: cursor, &bytes)
            show(cursor: true, &bytes)
        } else {
            show(cursor: false, &bytes)
        }
        guard isSynchronized, !bytes.isEmpty else { return bytes }
        return Array("\u{1B}[?2026h".utf8) + bytes + Array("\u{1B}[?2026l".utf8)
    }

    private mutating func clear(_ size: TerminalSize, _ bytes: inout [UInt8]) -> Screen {
        setPen(.plain, &bytes)
        bytes += "\u{1B}[2J".utf8
        return Screen(Canvas(size), traits)
    }

    private mutating func show(cursor isVisible: Bool, _ bytes: inout [UInt8]) {
        guard isCursorVisible != isVisible else { return }
        isCursorVisible = isVisible
        bytes += (isVisible ? "\u{1B}[?25h" : "\u{1B}[?25l").utf8
    }

    private mutating func setPen(_ next: Pen, _ bytes: inout [UInt8]) {
        bytes += next.change(from: pen)
        pen = next
    }

    /// Returns whether a cell looks right if it is written with the current pen: a space between bold letters need not
    /// be plain.
    private func matchesPen(_ cell: Screen.Cell) -> Bool {
        pen == cell.pen || cell.character == " " && pen?.onSpaces == cell.pen
    }

    // MARK: Rows

    private mutating func paint(_ row: Int, from before: Screen, to next: Screen, _ bytes: inout [UInt8]) {
        let (old, new) = (before.row(row), next.row(row))
        guard old != new else { return }
        let first = new.startIndex
        let blankFrom = (new.lastIndex { $0 != .blank } ?? first - 1) + 1 - first
        var column = 0
        var uncertainBefore = 0
        while column < new.count {
            let cell = new[first + column]
            guard column < uncertainBefore || cell != old[first + column], cell.columns > 0 else {
                column += 1
                continue
            }
            if column >= blankFrom, new.count - column >= Self.fewestErased {
                approach(CellPosition(column: column, row: row), in: next, &bytes)
                setPen(.plain, &bytes)
                bytes += "\u{1B}[K".utf8
                return
            }
            approach(CellPosition(column: column, row: row), in: next, &bytes)
            write(cell, rowEnd: new.count, &bytes)
            column += cell.columns
            if cell.hasUncertainWidth { uncertainBefore = column + Self.mostExtraCells }
        }
    }

    /// Writes a character at the cursor.
    ///
    /// If terminals may disagree over the cells it takes, the cells it should take become blank first, in case it takes
    /// fewer.
    private mutating func write(_ cell: Screen.Cell, rowEnd: Int, _ bytes: inout [UInt8]) {
        if !matchesPen(cell) { setPen(cell.pen, &bytes) }
        guard let start = place else { return }
        let end = CellPosition(column: start.column + cell.columns, row: start.row)
        // After the last cell of a row, terminals differ in where the cursor waits.
        let after = end.column < rowEnd ? end : nil
        if cell.hasUncertainWidth {
            bytes += Array(repeating: UInt8(ascii: " "), count: cell.columns)
            place = after
            move(to: start, &bytes)
        }
        bytes += String(cell.character).utf8
        place = cell.hasUncertainWidth ? nil : after
    }

    // MARK: Moving

    /// Moves to a cell. Writes the cells before it again if that is shorter.
    private mutating func approach(_ target: CellPosition, in screen: Screen, _ bytes: inout [UInt8]) {
        if let place, place.row == target.row, place.column < target.column,
            target.column - place.column <= Self.widestGap
        {
            let row = screen.row(target.row)
            let gap = row[row.startIndex + place.column..<row.startIndex + target.column]
            if gap.allSatisfy({ matchesPen($0) && $0.character.isASCII && $0.columns == 1 }) {
                bytes += gap.compactMap(\.character.asciiValue)
                self.place = target
                return
            }
        }
        move(to: target, &bytes)
    }

    private mutating func move(to target: CellPosition, _ bytes: inout [UInt8]) {
        guard place != target else { return }
        bytes += CursorMove.shortest(from: place, to: target)
        place = target
    }
}
