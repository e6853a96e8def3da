/// A name for people to recognize a peer by: 1 to 63 bytes of UTF-8 without control
/// characters, not all of them invisible. It does not identify a peer.
public struct DisplayName: Hashable, Sendable, CustomStringConvertible {
    /// The maximum length of a name, in bytes.
    public static let maximumByteCount = 63

    /// The name as text.
    public let description: String

    /// Creates the name `text`. Returns nil if `text` is empty, longer than 63 bytes, contains a control character, or
    /// is blank: only white space and invisible characters.
    public init?(exactly text: String) {
        guard Self.isWellFormed(text), !text.isBlank else { return nil }
        description = text
    }

    /// Creates the name `text` that `peer` has given itself. A blank name, which earlier versions allowed, becomes the
    /// short PeerID. Returns nil if `text` breaks another rule of names.
    package init?(_ text: String, of peer: PeerID) {
        guard Self.isWellFormed(text) else { return nil }
        description = text.isBlank ? peer.short : text
    }

    /// Creates the valid name closest to `text` for `peer`; the short PeerID if nothing visible is left.
    package init(fitting text: String, of peer: PeerID) {
        let fitted = Self.fitted(text)
        description = fitted.isBlank ? peer.short : fitted
    }

    /// Creates the valid name closest to `text`: without control characters, and cut between characters at 63 bytes. If
    /// nothing visible is left, the name is "unnamed".
    public init(fitting text: String) {
        let fitted = Self.fitted(text)
        description = fitted.isBlank ? "unnamed" : fitted
    }

    /// Whether `text` has 1 to 63 bytes and no control character, as names on the wire have it. It may be blank.
    package static func isWellFormed(_ text: String) -> Bool {
        (1...maximumByteCount).contains(text.utf8.count) && !text.hasControlCharacter
    }

    private static func fitted(_ text: String) -> String {
        var kept = ""
        for character in text
        where character.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) {
            guard kept.utf8.count + character.utf8.count <= maximumByteCount else { break }
            kept.append(character)
        }
        return kept
    }
}

extension String {
    /// Whether the text contains a control character. ASCII is judged by its bytes, which takes a fraction of the time
    /// of looking up each character in the tables of Unicode.
    var hasControlCharacter: Bool {
        let isPrintable = utf8.withContiguousStorageIfAvailable { $0.allSatisfy(\.isPrintableASCII) }
        if isPrintable ?? false { return false }
        return unicodeScalars.contains { $0.properties.generalCategory == .control }
    }

    /// Whether a person sees nothing of the text. A character of ASCII decides that at once for most names.
    var isBlank: Bool {
        !utf8.contains { $0 != 0x20 && $0.isPrintableASCII } && unicodeScalars.allSatisfy(\.isInvisible)
    }
}

extension Unicode.Scalar {
    /// Whether the character is white space, or shows nothing by itself.
    fileprivate var isInvisible: Bool {
        let isBlankPattern = self == "\u{2800}"  // Braille without a dot: a symbol to Unicode.
        return properties.isWhitespace || properties.isDefaultIgnorableCodePoint || isBlankPattern
            || [.control, .format].contains(properties.generalCategory)
    }
}

extension UInt8 {
    /// Whether the byte is a character of ASCII that is no control character.
    var isPrintableASCII: Bool { (0x20..<0x7F).contains(self) }
}

extension DisplayName {
    /// The name and the short PeerID of the peer that has it, for errors.
    package func label(of peer: PeerID) -> String {
        // In one pass, which takes a third of the time of interpolation.
        let (name, short) = (description.utf8, peer.short.utf8)
        return String(unsafeUninitializedCapacity: name.count + short.count + 3) { text in
            var end = text.initialize(fromContentsOf: name)
            end = text[end...].initialize(fromContentsOf: " (".utf8)
            end = text[end...].initialize(fromContentsOf: short)
            return text[end...].initialize(fromContentsOf: ")".utf8)
        }
    }
}
