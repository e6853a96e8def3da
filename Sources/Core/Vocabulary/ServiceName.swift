/// What a program offers and looks for, like `fourinarow`: 1 to 15 of a–z, 0–9 and `-` (RFC 6335).
public struct ServiceName: Hashable, Sendable, CustomStringConvertible, LosslessStringConvertible {
    /// The name itself.
    public let description: String

    /// Nil unless `text` is 1 to 15 of a–z, 0–9 and `-`, with a letter in it, no hyphen at an end, and no two in a row.
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
    /// For names written in the program's source; a name that breaks the rule stops the program there.
    public init(stringLiteral value: String) {
        guard let name = ServiceName(value) else {
            preconditionFailure("\"\(value)\" is no service name: 1 to 15 of a-z, 0-9 and '-', with a letter")
        }
        self = name
    }
}
