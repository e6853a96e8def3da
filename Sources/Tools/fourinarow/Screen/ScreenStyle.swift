import FourInARow
import Terminal

/// The look of a screen. The painter decides about its colours.
struct ScreenStyle: Hashable {
    /// Whether the terminal shows more than ASCII.
    var isUnicode: Bool
    /// Whether discs are seen falling.
    var animates: Bool
}

/// The characters that a screen draws with. If the terminal shows only ASCII, they are all ASCII.
struct Glyphs: Hashable {
    let isUnicode: Bool

    var red: Character { isUnicode ? "●" : "X" }
    var yellow: Character { isUnicode ? "○" : "O" }
    /// A disc that the host has not granted yet.
    var pending: Character { isUnicode ? "◌" : "?" }
    /// The sign above the column where a disc would be dropped.
    var cursor: Character { isUnicode ? "▼" : "v" }
    /// The sign before the chosen table.
    var chosen: Character { isUnicode ? "▸" : ">" }
    var separator: Character { isUnicode ? "·" : "-" }
    /// The sign at the end of text that is cut off.
    var cut: Character { isUnicode ? "…" : "~" }
    /// The end of a sentence about something that is still going on.
    var dots: String { isUnicode ? "…" : "..." }
    var across: Character { isUnicode ? "─" : "-" }
    var down: Character { isUnicode ? "│" : "|" }

    func disc(_ disc: Disc) -> Character { disc == .red ? red : yellow }

    /// The corners, edges and crossings of a grid: three rows of left, inner and right.
    var crossings: [[Character]] {
        isUnicode
            ? [["┌", "┬", "┐"], ["├", "┼", "┤"], ["└", "┴", "┘"]]
            : Array(repeating: ["+", "+", "+"], count: 3)
    }

    /// Returns a quality, 0 to 1, as four characters.
    func bars(_ quality: Double) -> String {
        let count = quality.isNaN ? 0 : Int((min(max(quality, 0), 1) * 4).rounded(.up))
        let full: [Character] = isUnicode ? ["▂", "▄", "▆", "█"] : ["#", "#", "#", "#"]
        return String(full.prefix(count)) + String(repeating: String(isUnicode ? "·" : "."), count: 4 - count)
    }
}

/// The colours and accents of everything on the screen. Things also differ by their characters.
enum Palette {
    /// The background of the discs: always the same dark colour, whatever the terminal's own background is.
    static let boardBackground = Colour.mixed(red: 0, green: 0, blue: 1)
    static let grid = Style(.mixed(red: 1, green: 2, blue: 5), on: boardBackground)
    /// White on black on every terminal, because phones read no other codes well.
    static let code = Style(.mixed(red: 5, green: 5, blue: 5), on: .mixed(red: 0, green: 0, blue: 0))
    static let key = Style.bold
    static let meaning = Style.dim
    static let heading = Style.bold
    static let quiet = Style.dim
    static let chosen = Style.reverse
    static let mark = Style(.brightWhite, on: boardBackground, .bold)
    static let winningMark = Style(.brightGreen, on: boardBackground, .bold)
    static let warning = Style(.brightMagenta, .bold)

    static func colour(_ disc: Disc) -> Colour { disc == .red ? .brightRed : .brightYellow }

    /// Returns the style of a disc on the board.
    static func disc(_ disc: Disc) -> Style { Style(colour(disc), on: boardBackground, .bold) }

    /// Returns the style of a disc on its way to the host.
    static func pending(_ disc: Disc) -> Style { Style(colour(disc), on: boardBackground, .dim) }

    /// Returns the style of a colour outside of the board. There, bright yellow may not be visible on the terminal's
    /// own background.
    static func name(_ disc: Disc) -> Style { Style(disc == .red ? .red : .yellow, .bold) }
}
