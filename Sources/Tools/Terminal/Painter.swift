/// Turns what a terminal shows into what it should show, with few bytes.
///
/// A value without I/O: whoever holds it hands over one canvas after the other and writes the bytes it gets to the terminal, all of
/// them and in order, while nobody else writes there.
public struct Painter: Sendable {
    /// What the terminal shows; nil where nobody knows.
    private var shown: Screen?
    private var pen: Pen?
    /// Where the next character would go; nil where terminals may disagree.
    private var place: CellPosition?
    private var isCursorVisible: Bool?
    private let traits: TerminalTraits
    private let isSynchronized: Bool

    /// Cells that look as they should are written again, where that is not longer than jumping over them.
    private static let widestGap = 3
    /// Blanks from here on to the end of a row are erased instead of written.
    private static let fewestErased = 4
    /// By how many cells a character may reach further than it should; those are written after it.
    private static let furthest = 2

    /// A painter for a terminal that can do this; with `isSynchronized` it tells the terminal where a painting begins and ends, so that
    /// nobody sees half of one. Terminals that do not know of that take no notice.
    public init(_ traits: TerminalTraits, isSynchronized: Bool = true) {
        self.traits = traits
        self.isSynchronized = isSynchronized
    }

    /// Has the next painting draw everything, since somebody else has written to the terminal or its size has changed.
    public mutating func forget() {
        shown = nil
        pen = nil
        place = nil
        isCursorVisible = nil
    }

    /// What makes the terminal show `canvas`; nothing if it does already. It must not be larger than the terminal.
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
        wear(.plain, &bytes)
        bytes += "\u{1B}[2J".utf8
        return Screen(Canvas(size), traits)
    }

    private mutating func show(cursor isVisible: Bool, _ bytes: inout [UInt8]) {
        guard isCursorVisible != isVisible else { return }
        isCursorVisible = isVisible
        bytes += (isVisible ? "\u{1B}[?25h" : "\u{1B}[?25l").utf8
    }

    private mutating func wear(_ next: Pen, _ bytes: inout [UInt8]) {
        bytes += next.change(from: pen)
        pen = next
    }

    /// Whether a cell looks as it should, written with what the terminal writes with now: a space between bold letters need not be plain.
    private func suits(_ cell: Screen.Cell) -> Bool {
        pen == cell.pen || cell.character == " " && pen?.onSpaces == cell.pen
    }

    // MARK: Rows

    private mutating func paint(_ row: Int, from before: Screen, to next: Screen, _ bytes: inout [UInt8]) {
        let (old, new) = (before.row(row), next.row(row))
        guard old != new else { return }
        let first = new.startIndex
        let blankFrom = (new.lastIndex { $0 != .blank } ?? first - 1) + 1 - first
        var column = 0
        var doubtfulBefore = 0
        while column < new.count {
            let cell = new[first + column]
            guard column < doubtfulBefore || cell != old[first + column], cell.columns > 0 else {
                column += 1
                continue
            }
            if column >= blankFrom, new.count - column >= Self.fewestErased {
                approach(CellPosition(column: column, row: row), in: next, &bytes)
                wear(.plain, &bytes)
                bytes += "\u{1B}[K".utf8
                return
            }
            approach(CellPosition(column: column, row: row), in: next, &bytes)
            write(cell, rowEnd: new.count, &bytes)
            column += cell.columns
            if cell.isDoubtful { doubtfulBefore = column + Self.furthest }
        }
    }

    /// Writes a character where the cursor is. Where terminals may disagree over the cells it takes, those it should take are blank before,
    /// in case that it takes fewer.
    private mutating func write(_ cell: Screen.Cell, rowEnd: Int, _ bytes: inout [UInt8]) {
        if !suits(cell) { wear(cell.pen, &bytes) }
        guard let start = place else { return }
        let end = CellPosition(column: start.column + cell.columns, row: start.row)
        // Beyond the last cell the cursor waits in ways of its own.
        let after = end.column < rowEnd ? end : nil
        if cell.isDoubtful {
            bytes += Array(repeating: UInt8(ascii: " "), count: cell.columns)
            place = after
            move(to: start, &bytes)
        }
        bytes += String(cell.character).utf8
        place = cell.isDoubtful ? nil : after
    }

    // MARK: Moving

    /// Gets to a cell, writing those before it once more if that is shorter.
    private mutating func approach(_ target: CellPosition, in screen: Screen, _ bytes: inout [UInt8]) {
        if let place, place.row == target.row, place.column < target.column,
            target.column - place.column <= Self.widestGap
        {
            let row = screen.row(target.row)
            let gap = row[row.startIndex + place.column..<row.startIndex + target.column]
            if gap.allSatisfy({ suits($0) && $0.character.isASCII && $0.columns == 1 }) {
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
