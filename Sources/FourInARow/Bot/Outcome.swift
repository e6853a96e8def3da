/// How a game ends for the side to move, if both sides play as well as can be.
public enum Outcome: Int, Hashable, Sendable, Comparable, CaseIterable {
    case loss = -1
    case draw = 0
    case win = 1

    /// The same end, as the other side sees it.
    public var forOpponent: Outcome {
        switch self {
        case .loss: .win
        case .draw: .draw
        case .win: .loss
        }
    }

    /// A loss is less than a draw, and a draw less than a win.
    public static func < (one: Outcome, other: Outcome) -> Bool { one.rawValue < other.rawValue }
}
