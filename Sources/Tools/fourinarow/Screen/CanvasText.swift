import Terminal

extension Canvas {
    /// Writes as much as fits into `columns`, and marks where text is cut off. Returns the number of cells used.
    @discardableResult
    mutating func write(
        _ text: String, column: Int, row: Int, _ style: Style = .plain, within columns: Int, _ glyphs: Glyphs
    ) -> Int {
        let fitting = CellText(text).fitting(max(columns, 0), ending: glyphs.cut)
        return write(fitting, at: CellPosition(column: column, row: row), style)
    }

    /// Writes as much as fits, so that it ends before `end`.
    mutating func write(
        _ text: String, endingAt end: Int, row: Int, _ style: Style = .plain, within columns: Int,
        _ glyphs: Glyphs
    ) {
        let fitting = CellText(text).fitting(max(columns, 0), ending: glyphs.cut)
        write(fitting, at: CellPosition(column: end - fitting.columns, row: row), style)
    }

    /// Writes keys with their meanings. If they do not all fit, those that are kept come first, then the others in
    /// order.
    mutating func write(keys: [KeyMeaning], column: Int, row: Int, within columns: Int) {
        let gap = 2
        var free = columns + gap
        var fitting: Set<Int> = []
        for index in keys.indices.filter({ keys[$0].isKept }) + keys.indices.filter({ !keys[$0].isKept })
        where keys[index].columns + gap <= free {
            free -= keys[index].columns + gap
            fitting.insert(index)
        }
        var position = CellPosition(column: column, row: row)
        for entry in fitting.sorted().map({ keys[$0] }) {
            write(entry.key, at: position, Palette.key)
            position.column += entry.key.count + 1
            write(entry.meaning, at: position, Palette.meaning)
            position.column += entry.meaning.count + gap
        }
    }

    /// Writes sentences below each other, the newest last and bright, older ones dim. If they do not all fit, the last
    /// lines are written; in a single row, as much of the newest sentence as fits.
    mutating func write(
        notices: [String], column: Int, rows: Range<Int>, columns: Int, _ glyphs: Glyphs
    ) {
        if rows.count == 1, let newest = notices.last {
            write(newest, column: column, row: rows.lowerBound, within: columns, glyphs)
            return
        }
        var lines: [(CellText, Style)] = []
        for (index, notice) in notices.enumerated() {
            let style = index == notices.count - 1 ? Style.plain : Palette.quiet
            lines += CellText(notice).lines(of: columns).map { ($0, style) }
        }
        for (row, line) in zip(rows, lines.suffix(rows.count)) {
            write(line.0, at: CellPosition(column: column, row: row), line.1)
        }
    }
}

/// A key, or several keys, with their meaning.
struct KeyMeaning: Hashable {
    var key: String
    var meaning: String
    /// Whether it is shown even if others then are not.
    var isKept: Bool

    init(_ key: String, _ meaning: String, isKept: Bool = false) {
        self.key = key
        self.meaning = meaning
        self.isKept = isKept
    }

    /// Shows all keys, so it is kept where some are not shown.
    static let help = KeyMeaning("?", "all keys", isKept: true)

    /// The number of cells that it takes.
    var columns: Int { key.count + 1 + meaning.count }
}

/// The screen of a terminal that is too small.
enum TooSmall {
    static func canvas(_ size: TerminalSize) -> Canvas {
        var canvas = Canvas(size)
        guard canvas.size.columns > 0 else { return canvas }
        let least = Layout.least
        let sentence =
            "This game needs \(least.columns) x \(least.rows) characters, and this terminal shows "
            + "\(canvas.size.columns) x \(canvas.size.rows). Ctrl-C quits."
        let lines = CellText(sentence).lines(of: canvas.size.columns)
        let top = max((canvas.size.rows - lines.count) / 2, 0)
        for (index, line) in lines.enumerated() {
            canvas.write(line, at: CellPosition(column: 0, row: top + index))
        }
        return canvas
    }
}
