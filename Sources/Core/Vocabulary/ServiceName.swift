/// The name under which programs of one kind find each other, such as `fourinarow`: 1 to 15
/// characters of a–z, 0–9 and `-` (RFC 6335).
public struct ServiceName: Hashable, Sendable, CustomStringConvertible, LosslessStringConvertible {
    /// The name as text.
    public let description: String

    /// Creates the service name `text`. Returns nil unless it has 1 to 15 characters of a–z, 0–9 and `-`, contains a
    /// letter, has no hyphen at either end, and no two hyphens in a row.
    public init?(_ text: String) {
        let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        let hyphen = UInt8(ascii: "-")
        let characters = Array(text.utf8)
        guard (1...15).contains(characters.count),
            characters.allSatisfy({ letters.contains($0) || digits.contains($0) || $0 == hyphen }),
            characters.contains(where: letters.contains),
            characters.first != hyphen, characters.last != hyphen, !text.contains("--")
        else { return nil }
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
