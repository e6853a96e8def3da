/// A canvas as one particular terminal can show it. Two canvases that look the same there give equal screens.
struct Screen: Equatable, Sendable {
    struct Cell: Equatable, Sendable {
        var character: Character
        var pen: Pen
        var columns: Int

        static let blank = Cell(character: " ", pen: .plain, columns: 1)

        /// Whether terminals may disagree over how many cells the character takes.
        var hasUncertainWidth: Bool {
            let scalars = character.unicodeScalars
            guard let first = scalars.first, first.value >= 0x300 else { return scalars.count > 1 }
            return scalars.count > 1 || first.properties.isEmojiPresentation
        }
    }

    let size: TerminalSize
    private var cells: [Cell] = []

    init(_ canvas: Canvas, _ traits: TerminalTraits) {
        size = canvas.size
        cells.reserveCapacity(size.columns * size.rows)
        for row in 0..<size.rows {
            for cell in canvas.row(row) {
                let pen = Pen(cell.style, traits.colours)
                var shown = Cell(character: cell.character, pen: pen, columns: cell.columns)
                if !traits.isUnicode {
                    shown.character = Self.ascii(for: cell.character)
                    if cell.columns != 1 { (shown.character, shown.columns) = ("?", 1) }
                }
                if shown.character == " " { shown.pen = pen.onSpaces }
                cells.append(shown)
            }
        }
    }

    func row(_ row: Int) -> ArraySlice<Cell> { cells[row * size.columns..<(row + 1) * size.columns] }

    /// Returns the replacement of a character on a terminal that shows only ASCII.
    private static func ascii(for character: Character) -> Character {
        guard !character.isASCII else { return character }
        return switch character {
        case "─", "━", "═": "-"
        case "│", "┃", "║": "|"
        case "┌"..."┿", "╒"..."╰": "+"
        case "•", "·", "●", "○", "◉", "◯": "o"
        case "…": "."
        case "‘", "’": "'"
        case "“", "”": "\""
        case "–", "—": "-"
        case "✓", "✔": "x"
        case "→", "▶", "▸", "›": ">"
        case "←", "◀", "◂", "‹": "<"
        case "↑", "▲": "^"
        case "↓", "▼": "v"
        case "█", "▓", "▒", "■": "#"
        default: "?"
        }
    }
}
