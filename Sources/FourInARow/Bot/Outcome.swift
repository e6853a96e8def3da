/// The outcome of a game for the side to move, if both sides play perfectly.
public enum Outcome: Int, Hashable, Sendable, Comparable, CaseIterable {
    case loss = -1
    case draw = 0
    case win = 1

    /// This outcome as the other side sees it.
    public var forOpponent: Outcome {
        switch self {
        case .loss: .win
        case .draw: .draw
        case .win: .loss
        }
    }

    /// Orders outcomes: a loss is less than a draw, and a draw less than a win.
    public static func < (one: Outcome, other: Outcome) -> Bool { one.rawValue < other.rawValue }
}
