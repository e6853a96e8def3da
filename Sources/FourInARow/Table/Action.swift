/// What a player does at a table.
public enum Action: Hashable, Sendable {
    /// Drops a disc.
    case move(Column)
    /// Gives up.
    case resign
    /// Begins another game, and moves first in it.
    case rematch
    /// Says something.
    case say(Words)

    /// Whether it is said and not done: nobody waits for a turn with that.
    var isWords: Bool {
        if case .say = self { return true }
        return false
    }
}

/// What a player says about the game with a move, so that two programs that see different boards find out at once. The raw value
/// is what travels.
package enum Claim: UInt8, Hashable, Sendable {
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

/// A line that somebody says, or a name: text that fits on a line, and cannot do anything but stand there.
public struct Words: Hashable, Sendable, CustomStringConvertible {
    /// So many bytes of UTF-8 at most.
    public static let byteLimit = 200

    /// The text.
    public let description: String

    /// Nil for no text at all, for more than `byteLimit` bytes, and for anything that would steer a terminal or the order in
    /// which text is read.
    public init?(_ text: String) {
        guard (1...Self.byteLimit).contains(text.utf8.count), text.unicodeScalars.allSatisfy(Self.isPlain)
        else { return nil }
        description = text
    }

    /// As much of `text` as is allowed; nil where nothing is left of it.
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
        // Joiners make up letters and emoji; what is left turns the reading around, or is not seen at all.
        case .format: scalar == "\u{200D}" || scalar == "\u{200C}"
        default: true
        }
    }
}
