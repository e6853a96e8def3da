/// The label a person knows a peer by: 1 to 63 bytes of UTF-8 without control characters. It identifies nobody.
public struct DisplayName: Hashable, Sendable, CustomStringConvertible {
    /// The most bytes a name may have.
    public static let maximumByteCount = 63

    /// The name itself.
    public let description: String

    /// Nil when `text` is empty, longer than 63 bytes, or holds a control character.
    public init?(exactly text: String) {
        guard (1...Self.maximumByteCount).contains(text.utf8.count),
            text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
        else { return nil }
        description = text
    }

    /// The nearest name to `text`: control characters dropped, cut between characters at 63 bytes; "unnamed" if
    /// nothing is left.
    public init(fitting text: String) {
        var kept = ""
        for character in text
        where character.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) {
            guard kept.utf8.count + character.utf8.count <= Self.maximumByteCount else { break }
            kept.append(character)
        }
        description = kept.isEmpty ? "unnamed" : kept
    }
}
