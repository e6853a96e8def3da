import FoundationEssentials
import Glibc
import NighCore

/// Values of CBOR (RFC 8949) that were received, checked once and listed in the order of their bytes. Tags are skipped,
/// and lengths must be known beforehand.
final class CBORTape {
    enum Kind { case unsigned, negative, bytes, text, array, map, bool, null, float }

    /// A value. Those in an array or a map follow it, in a map each behind its key.
    struct Entry {
        let kind: Kind
        /// A number, the offset of bytes or of a text, or the count of values or pairs.
        let value: UInt64
        /// The number of bytes in a text or in bytes; for an array or a map the index of the entry behind its values.
        var extent = 0
    }

    let bytes: ByteSlice
    let entries: [Entry]
    let context: (any CBORContext)?

    /// How deep arrays and maps may lie in each other.
    static let deepest = 64
    /// The number of values that one message may have, since each takes more memory than the byte that it may be.
    static let mostItems = 1 << 20
    /// The number of pairs of a map that are searched one by one.
    private static let mostSearched = 16

    /// Checks bytes, which must be one value, or any number of them.
    init(_ bytes: ByteSlice, isSequence: Bool, _ context: (any CBORContext)? = nil) throws {
        self.bytes = bytes
        self.context = context
        entries = try bytes.withUnsafeBytes { bytes in
            var parser = CBORParser(bytes)
            try parser.parse(isSequence: isSequence)
            return parser.entries
        }
    }

    /// The entry that follows a value and all that is in it.
    func next(after index: Int) -> Int {
        let entry = entries[index]
        return entry.kind == .array || entry.kind == .map ? entry.extent : index + 1
    }

    // MARK: Values

    func isNull(at index: Int) -> Bool { entries[index].kind == .null }

    func bool(at index: Int) -> Bool? { entries[index].kind == .bool ? entries[index].value != 0 : nil }

    @inline(__always)
    func integer<Number: FixedWidthInteger>(_ type: Number.Type, at index: Int) -> Number? {
        let entry = entries[index]
        switch entry.kind {
        case .unsigned: return Number(exactly: entry.value)
        case .negative: return Int64(exactly: entry.value).flatMap { Number(exactly: ~$0) }
        default: return nil
        }
    }

    func double(at index: Int) -> Double? {
        let entry = entries[index]
        return switch entry.kind {
        case .float: Double(bitPattern: entry.value)
        case .unsigned: Double(entry.value)
        case .negative: -1 - Double(entry.value)
        default: nil
        }
    }

    func float(at index: Int) -> Float? { double(at: index).map { Float($0) } }

    func text(at index: Int) -> String? {
        content(.text, at: index) { raw in
            // The parser has validated it.
            raw.withMemoryRebound(to: UInt8.self) { String(copying: UTF8Span(unchecked: $0.span)) }
        }
    }

    func bytes(at index: Int) -> [UInt8]? { content(.bytes, at: index) { Array($0) } }

    func data(at index: Int) -> Data? { content(.bytes, at: index) { Data($0) } }

    private func content<Value>(
        _ kind: Kind, at index: Int, _ make: (UnsafeRawBufferPointer) -> Value
    ) -> Value? {
        let entry = entries[index]
        guard entry.kind == kind else { return nil }
        return bytes.withUnsafeBytes { make(Self.content(of: entry, in: $0)) }
    }

    private static func content(of entry: Entry, in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let offset = Int(entry.value)
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + entry.extent])
    }

    // MARK: Keys

    /// The indices of the keys of a map.
    func keys(of map: Int) -> [Int] {
        var keys: [Int] = []
        var key = map + 1
        while key < entries[map].extent {
            keys.append(key)
            key = next(after: key + 1)
        }
        return keys
    }

    /// A key, also one that another language wrote as a number.
    func name(ofKey key: Int) -> String {
        switch entries[key].kind {
        case .unsigned: "\(entries[key].value)"
        case .negative: "-\(entries[key].value + 1)"
        default: text(at: key) ?? ""
        }
    }

    /// A table of the keys of a map that has too many keys to search them one by one.
    func keyTable(of map: Int) -> CBORKeyTable? {
        guard entries[map].value > Self.mostSearched else { return nil }
        var table = CBORKeyTable(for: Int(entries[map].value))
        for key in keys(of: map) {
            var name = name(ofKey: key)
            name.withUTF8 { name in _ = table.insert(key, UnsafeRawBufferPointer(name)) { isKey($0, name) } }
        }
        return table
    }

    /// Returns the index of the value of a key. Of equal keys the first counts.
    func value(of name: String, in map: Int, _ table: CBORKeyTable?) -> Int? {
        var name = name
        return name.withUTF8 { name in
            if let table {
                return table.find(UnsafeRawBufferPointer(name)) { isKey($0, name) }.map { $0 + 1 }
            }
            var key = map + 1
            let end = entries[map].extent
            while key < end {
                if isKey(key, name) { return key + 1 }
                key = next(after: key + 1)
            }
            return nil
        }
    }

    private func isKey(_ key: Int, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        let entry = entries[key]
        guard entry.kind == .text else { return self.name(ofKey: key).utf8.elementsEqual(name) }
        guard entry.extent == name.count else { return false }
        return bytes.withUnsafeBytes { bytes in
            name.isEmpty || memcmp(bytes.baseAddress! + Int(entry.value), name.baseAddress!, name.count) == 0
        }
    }
}
