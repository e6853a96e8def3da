/// One key of a service's text record, with its value.
public struct TextEntry: Hashable, Sendable {
    /// Printable ASCII without `=`. Upper and lower case count as the same.
    public let key: String
    /// Any bytes; nil if the key stands alone, without `=`.
    public let value: [UInt8]?

    /// Creates a pair. Returns nil unless the key is 1 or more characters of printable ASCII without `=`, and key, `=`
    /// and value together fit into 255 bytes.
    public init?(key: String, value: [UInt8]?) {
        guard !key.isEmpty, key.utf8.allSatisfy(Self.isAllowed),
            key.utf8.count + 1 + (value?.count ?? 0) <= 255
        else { return nil }
        self.key = key
        self.value = value
    }

    /// Creates a pair with text as the value.
    public init?(key: String, value: String) {
        self.init(key: key, value: Array(value.utf8))
    }

    fileprivate init?(piece: ArraySlice<UInt8>) {
        let key = piece.prefix { $0 != UInt8(ascii: "=") }
        guard key.allSatisfy(Self.isAllowed) else { return nil }
        let value = piece.count > key.count ? Array(piece.dropFirst(key.count + 1)) : nil
        self.init(key: String(decoding: key, as: UTF8.self), value: value)
    }

    fileprivate var piece: [UInt8] {
        Array(key.utf8) + (value.map { [UInt8(ascii: "=")] + $0 } ?? [])
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "=")
    }
}

/// The text record of a service: the data of a DNS TXT record, which a Bluetooth service record carries as well.
package struct TextRecord: Hashable, Sendable {
    /// The most bytes of a TXT record that are read. RFC 6763 asks for under 1,300.
    package static let maximumByteCount = 2_048

    package let entries: [TextEntry]

    /// Creates a record of `entries`. Of several with the same key, only the first is kept.
    package init(entries: [TextEntry]) {
        var seen: Set<String> = []
        self.entries = entries.filter { seen.insert($0.key.lowercased()).inserted }
    }

    /// Parses the data of a TXT record. Returns nil if the lengths do not add up or the data is too long. As RFC 6763
    /// demands, the first of several entries with the same key counts, and pieces without a proper key are skipped.
    package init?(data: [UInt8]) {
        guard data.count <= Self.maximumByteCount else { return nil }
        var entries: [TextEntry] = []
        var rest = data[...]
        while let length = rest.popFirst().map(Int.init) {
            guard rest.count >= length else { return nil }
            if let entry = TextEntry(piece: rest.prefix(length)) { entries.append(entry) }
            rest = rest.dropFirst(length)
        }
        self.init(entries: entries)
    }

    /// The data of the TXT record. Never empty: without entries it is one empty piece.
    package var data: [UInt8] {
        entries.isEmpty ? [0] : entries.flatMap { [UInt8($0.piece.count)] + $0.piece }
    }
}

extension Sequence<TextEntry> {
    /// Returns the value of the pair `key`, if that pair is there and has a value.
    package func value(of key: String) -> [UInt8]? {
        first { $0.key.lowercased() == key.lowercased() }?.value
    }
}
