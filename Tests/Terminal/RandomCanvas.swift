import NighCore

@testable import Terminal

/// Random screens that nobody would draw by hand.
enum RandomCanvas {
    private static let words = [
        "a", "four in a row", "日本", "한", "é", "e\u{301}x", "●○", "🎉", "👩‍👩‍👧!", "🇩🇪", "👍🏽", "    ", " ",
        "\u{1B}[31m", "\u{202E}abc", "x\ty", "ｗ", "1\u{20E3}", "z\u{300}\u{301}\u{302}\u{303}\u{304}",
    ]
    private static let colours: [Colour] = [
        .standard, .standard, .red, .brightCyan, .grey(7), .mixed(red: 1, green: 5, blue: 0),
    ]

    static func size(_ chance: inout SeededGenerator) -> TerminalSize {
        TerminalSize(columns: .random(in: 1...24, using: &chance), rows: .random(in: 1...6, using: &chance))
    }

    static func draw(on canvas: inout Canvas, _ chance: inout SeededGenerator) {
        if chance.oneIn(5) { canvas.fill(canvas.area, style(&chance)) }
        if chance.oneIn(5) {
            canvas.box(
                CellArea(
                    column: column(canvas, &chance), row: row(canvas, &chance),
                    columns: .random(in: 0...9, using: &chance), rows: .random(in: 0...5, using: &chance)),
                .double, style(&chance))
        }
        for _ in 0..<Int.random(in: 0...5, using: &chance) {
            let position = CellPosition(column: column(canvas, &chance), row: row(canvas, &chance))
            let text = words.randomElement(using: &chance) ?? ""
            let columns = chance.oneIn(3) ? Int.random(in: 0...6, using: &chance) : .max
            canvas.write(text, at: position, style(&chance), columns: columns)
        }
        canvas.cursor =
            chance.oneIn(2)
            ? nil : CellPosition(column: column(canvas, &chance), row: row(canvas, &chance))
    }

    private static func column(_ canvas: Canvas, _ chance: inout SeededGenerator) -> Int {
        .random(in: -3...canvas.size.columns, using: &chance)
    }

    private static func row(_ canvas: Canvas, _ chance: inout SeededGenerator) -> Int {
        .random(in: -1...canvas.size.rows, using: &chance)
    }

    private static func style(_ chance: inout SeededGenerator) -> Style {
        Style(
            colours.randomElement(using: &chance) ?? .standard,
            on: colours.randomElement(using: &chance) ?? .standard,
            chance.oneIn(2) ? [] : Style.Accents(rawValue: .random(in: 0..<16, using: &chance)))
    }
}

/// Finds where a terminal differs from a canvas.
enum Difference {
    static func first(between terminal: TinyTerminal, and canvas: Canvas) -> String? {
        for row in 0..<canvas.size.rows {
            var isHalfOfDoubtful = false
            for (column, cell) in canvas.row(row).enumerated() {
                let seen = terminal.cells[row][column]
                let isDoubtful = cell.character.unicodeScalars.contains { $0.properties.isEmojiPresentation }
                defer { isHalfOfDoubtful = isDoubtful }
                if cell.columns == 0 {
                    if !isHalfOfDoubtful, seen.text != "" { return "\(row), \(column): half is \(seen)" }
                    continue
                }
                let scalars = cell.character.unicodeScalars.map { String($0) }
                let isThere = isDoubtful ? scalars.contains(seen.text) : seen.text == String(cell.character)
                guard isThere, looks(seen.look, as: cell.style, isSpace: cell.character == " ") else {
                    return "\(row), \(column): \(cell) is \(seen)"
                }
            }
        }
        let cursor = canvas.cursor.flatMap { canvas.area.contains($0) ? $0 : nil }
        if terminal.isCursorVisible != (cursor != nil) { return "cursor" }
        if let cursor, cursor != CellPosition(column: terminal.column, row: terminal.row) {
            return "cursor in \(terminal.row), \(terminal.column) instead of \(cursor)"
        }
        return nil
    }

    private static func looks(_ look: TinyTerminal.Look, as style: Style, isSpace: Bool) -> Bool {
        guard look.background == style.background.index.map(Int.init) else { return false }
        let accents: [(Style.Accents, Int)] = [(.bold, 1), (.dim, 2), (.underline, 4), (.reverse, 7)]
        let wanted = Set(accents.filter { style.accents.contains($0.0) }.map(\.1))
        if isSpace, wanted.isDisjoint(with: [4, 7]) { return look.accents.isDisjoint(with: [4, 7]) }
        return look.accents == wanted && look.foreground == style.foreground.index.map(Int.init)
    }
}
