/// The name under which programs of one kind find each other, such as `fourinarow`: 1 to 15
/// characters of a–z, 0–9 and `-` (RFC 6335).
public struct ServiceName: Hashable, Sendable, CustomStringConvertible, LosslessStringConvertible {
    /// The name as text.
    public let description: String

    /// Creates the service name `text`. Returns nil unless it has 1 to 15 characters of a–z, 0–9 and `-`, contains a
    /// letter, has no hyphen at either end, and no two hyphens in a row.
    public init?(_ text: String) {
        let hyphen = UInt8(ascii: "-")
        var hasLetter = false
        // A hyphen may neither begin the name nor follow another one, so the name is taken to begin behind a hyphen.
        var previous = hyphen
        guard (1...15).contains(text.utf8.count) else { return nil }
        for character in text.utf8 {
            switch character {
            case UInt8(ascii: "a")...UInt8(ascii: "z"): hasLetter = true
            case UInt8(ascii: "0")...UInt8(ascii: "9"): break
            case hyphen where previous != hyphen: break
            default: return nil
            }
            previous = character
        }
        guard hasLetter, previous != hyphen else { return nil }
        description = text
    }
}

extension ServiceName: ExpressibleByStringLiteral {
    /// Creates a service name from a literal in the source. Stops the program if the name is invalid.
    public init(stringLiteral value: String) {
        guard let name = ServiceName(value) else {
            preconditionFailure(
                "\"\(value)\" is not a service name: 1 to 15 of a-z, 0-9 and '-', with a letter")
        }
        self = name
    }
}
