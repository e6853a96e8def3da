import FourInARow
import Terminal

/// How a screen may look. What colours there are is the painter's business.
struct ScreenStyle: Hashable {
    /// Whether there is more than ASCII.
    var isUnicode: Bool
    /// Whether discs are seen falling.
    var animates: Bool
}

/// The characters that a screen draws with: where there is nothing but ASCII, none but that.
struct Glyphs: Hashable {
    let isUnicode: Bool

    var red: Character { isUnicode ? "●" : "X" }
    var yellow: Character { isUnicode ? "○" : "O" }
    /// A disc that the host has not granted yet.
    var pending: Character { isUnicode ? "◌" : "?" }
    /// Above the column a disc would be dropped into.
    var cursor: Character { isUnicode ? "▼" : "v" }
    /// Before what is chosen.
    var chosen: Character { isUnicode ? "▸" : ">" }
    var separator: Character { isUnicode ? "·" : "-" }
    /// At the end of what is cut off.
    var cut: Character { isUnicode ? "…" : "~" }
    /// At the end of what goes on.
    var dots: String { isUnicode ? "…" : "..." }
    var across: Character { isUnicode ? "─" : "-" }
    var down: Character { isUnicode ? "│" : "|" }

    func disc(_ disc: Disc) -> Character { disc == .red ? red : yellow }

    /// Corners, edges and crossings of a grid: three rows of left, inner and right.
    var crossings: [[Character]] {
        isUnicode
            ? [["┌", "┬", "┐"], ["├", "┼", "┤"], ["└", "┴", "┘"]]
            : Array(repeating: ["+", "+", "+"], count: 3)
    }

    /// How good something is, 0 to 1, in four characters.
    func bars(_ quality: Double) -> String {
        let count = quality.isNaN ? 0 : Int((min(max(quality, 0), 1) * 4).rounded(.up))
        let full: [Character] = isUnicode ? ["▂", "▄", "▆", "█"] : ["#", "#", "#", "#"]
        return String(full.prefix(count)) + String(repeating: String(isUnicode ? "·" : "."), count: 4 - count)
    }
}

/// What things look like in colour; each of them also differs by its character.
enum Palette {
    /// Behind the discs: the same dark whatever the terminal's own background is.
    static let boardBackground = Colour.mixed(red: 0, green: 0, blue: 1)
    static let grid = Style(.mixed(red: 1, green: 2, blue: 5), on: boardBackground)
    static let key = Style.bold
    static let meaning = Style.dim
    static let heading = Style.bold
    static let quiet = Style.dim
    static let chosen = Style.reverse
    static let mark = Style(.brightWhite, on: boardBackground, .bold)
    static let winningMark = Style(.brightGreen, on: boardBackground, .bold)
    static let warning = Style(.brightMagenta, .bold)

    static func colour(_ disc: Disc) -> Colour { disc == .red ? .brightRed : .brightYellow }

    /// On the board.
    static func disc(_ disc: Disc) -> Style { Style(colour(disc), on: boardBackground, .bold) }

    /// On its way to the host.
    static func pending(_ disc: Disc) -> Style { Style(colour(disc), on: boardBackground, .dim) }

    /// Outside of the board, where the background is the terminal's own and bright yellow may not be seen on it.
    static func name(_ disc: Disc) -> Style { Style(disc == .red ? .red : .yellow, .bold) }
}
