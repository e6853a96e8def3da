import FoundationEssentials
import NighCore

/// Values as CBOR (RFC 8949): shorter than JSON, and faster to write and to read. Many languages have a library for it.
///
///     settings.coder = CBORCoder()
///
/// A structure is a map with texts as keys, as in JSON; `Data` and `[UInt8]` are byte strings.
public struct CBORCoder: MessageCoder {
    /// Creates a coder.
    public init() {}

    /// Writes a value.
    public func encode(_ value: some Encodable) throws -> [UInt8] {
        var bytes: [UInt8] = []
        try CBORNode(value, at: []).item.write(to: &bytes)
        return bytes
    }

    /// Reads a value. Fails if the bytes are no such value, if values lie more than 64 deep in each other, or if there
    /// are more than 1,048,576 of them.
    public func decode<Value: Decodable>(_ type: Value.Type, from bytes: ByteSlice) throws -> Value {
        let item: CBORItem
        do throws(CBORItem.Malformed) {
            item = try bytes.withUnsafeBytes { bytes throws(CBORItem.Malformed) in
                try CBORItem(reading: bytes)
            }
        } catch {
            throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: error.reason))
        }
        return try CBORDecoder(item: item, codingPath: []).decode(type)
    }
}

/// A type that is one value of CBOR.
protocol CBORPrimitive {
    var cborItem: CBORItem { get }
    init?(_ item: CBORItem)
}

extension Bool: CBORPrimitive {
    var cborItem: CBORItem { .bool(self) }
    init?(_ item: CBORItem) {
        guard case .bool(let value) = item else { return nil }
        self = value
    }
}

extension String: CBORPrimitive {
    var cborItem: CBORItem { .text(self) }
    init?(_ item: CBORItem) {
        guard case .text(let value) = item else { return nil }
        self = value
    }
}

extension Double: CBORPrimitive {
    /// As short as it can be without a loss.
    var cborItem: CBORItem { Double(Float(self)) == self ? .float(Float(self)) : .double(self) }
    init?(_ item: CBORItem) {
        switch item {
        case .double(let value): self = value
        case .float(let value): self = Double(value)
        case .unsigned(let value): self = Double(value)
        case .negative(let value): self = -1 - Double(value)
        default: return nil
        }
    }
}

extension Float: CBORPrimitive {
    var cborItem: CBORItem { .float(self) }
    init?(_ item: CBORItem) {
        guard let value = Double(item) else { return nil }
        self = Float(value)
    }
}

extension CBORPrimitive where Self: FixedWidthInteger {
    var cborItem: CBORItem {
        self < 0 ? .negative(UInt64(truncatingIfNeeded: ~self)) : .unsigned(UInt64(truncatingIfNeeded: self))
    }

    init?(_ item: CBORItem) {
        switch item {
        case .unsigned(let value): self.init(exactly: value)
        case .negative(let value):
            guard let value = Int64(exactly: value) else { return nil }
            self.init(exactly: ~value)
        default: return nil
        }
    }
}

extension Int: CBORPrimitive {}
extension Int8: CBORPrimitive {}
extension Int16: CBORPrimitive {}
extension Int32: CBORPrimitive {}
extension Int64: CBORPrimitive {}
extension UInt: CBORPrimitive {}
extension UInt8: CBORPrimitive {}
extension UInt16: CBORPrimitive {}
extension UInt32: CBORPrimitive {}
extension UInt64: CBORPrimitive {}

extension Data: CBORPrimitive {
    var cborItem: CBORItem { .bytes(Array(self)) }
    init?(_ item: CBORItem) {
        guard case .bytes(let bytes) = item else { return nil }
        self.init(bytes)
    }
}
