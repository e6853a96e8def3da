/// The kind of line for boxes and lines.
public enum LineKind: Sendable {
    /// Thin, with square corners.
    case light
    /// Thin, with round corners.
    case round
    /// Thick.
    case heavy
    /// Two lines beside each other.
    case double

    var across: Character {
        switch self {
        case .light, .round: "─"
        case .heavy: "━"
        case .double: "═"
        }
    }

    var down: Character {
        switch self {
        case .light, .round: "│"
        case .heavy: "┃"
        case .double: "║"
        }
    }

    /// Upper left, upper right, lower left, lower right.
    var corners: [Character] {
        switch self {
        case .light: ["┌", "┐", "└", "┘"]
        case .round: ["╭", "╮", "╰", "╯"]
        case .heavy: ["┏", "┓", "┗", "┛"]
        case .double: ["╔", "╗", "╚", "╝"]
        }
    }
}
