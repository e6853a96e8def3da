/// A player's action at a table.
public enum Action: Hashable, Sendable {
    /// Drops a disc.
    case move(Column)
    /// Gives the game up.
    case resign
    /// Begins another game, and moves first in it.
    case rematch
    /// Says something.
    case say(SafeText)

    /// Whether the action is a chat line, which need not wait for the action before it.
    var isChat: Bool {
        if case .say = self { return true }
        return false
    }
}

/// A player's claim about the result of its move, so that two programs with different boards find out at once. Messages
/// contain the raw value.
public enum Claim: UInt8, Hashable, Sendable {
    case goesOn = 0
    case line = 1
    case draw = 2

    init(_ ending: Game.Ending?) {
        switch ending {
        case .line: self = .line
        case .draw: self = .draw
        case nil, .resigned, .left, .brokenOff: self = .goesOn
        }
    }
}

/// A chat line or a name: text that fits on one line and cannot control the terminal.
public struct SafeText: Hashable, Sendable, CustomStringConvertible {
    /// The most bytes of UTF-8.
    public static let byteLimit = 200

    /// The text.
    public let description: String

    /// Creates a text, or returns nil if it is empty, has more than `byteLimit` bytes, or contains anything that
    /// controls a terminal or the order in which text is read.
    public init?(_ text: String) {
        guard (1...Self.byteLimit).contains(text.utf8.count), text.unicodeScalars.allSatisfy(Self.isPlain)
        else { return nil }
        description = text
    }

    /// Creates a text from as much of `text` as is allowed, or returns nil if nothing is left of it.
    public init?(fitting text: String) {
        var fitting = ""
        for character in text where character.unicodeScalars.allSatisfy(Self.isPlain) {
            guard fitting.utf8.count + character.utf8.count <= Self.byteLimit else { break }
            fitting.append(character)
        }
        self.init(fitting)
    }

    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: false
        // Joiners are part of letters and emoji. The other format characters reverse the order of reading, or are
        // invisible.
        case .format: scalar == "\u{200D}" || scalar == "\u{200C}"
        default: true
        }
    }
}
