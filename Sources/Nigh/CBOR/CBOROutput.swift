import FoundationEssentials

/// The kind of a value, in the first three bits of its head (RFC 8949, section 3.1).
enum CBORMajor: UInt8 {
    case unsigned, negative, bytes, text, array, map, tag, simple
}

/// The bytes that encoders write, one encoder behind the other.
///
/// Its properties are exempt from Swift's checks for overlapping access: no access calls code of the program.
final class CBOROutput {
    @exclusivity(unchecked) var bytes: [UInt8] = []
    /// The keys of the maps that are being written, with their heads. Those of the innermost map come last.
    @exclusivity(unchecked) var keys: [Range<Int>] = []
    /// The encoder that may write.
    var writer: ObjectIdentifier?
    let context: (any CBORContext)?

    init(_ context: (any CBORContext)? = nil) {
        self.context = context
        // Most values fit, so their bytes need not move.
        bytes.reserveCapacity(64)
        keys.reserveCapacity(8)
    }

    /// Removes the bytes from `offset` on.
    func truncate(to offset: Int) { bytes.removeLast(bytes.count - offset) }

    func appendHead(_ major: CBORMajor, _ number: UInt64) {
        let kind = major.rawValue << 5
        if number < 24 { return bytes.append(kind | UInt8(truncatingIfNeeded: number)) }
        switch number {
        case 0...UInt64(UInt8.max):
            bytes.append(kind | 24)
            bytes.append(UInt8(truncatingIfNeeded: number))
        case 0...UInt64(UInt16.max): append(kind | 25, UInt16(truncatingIfNeeded: number))
        case 0...UInt64(UInt32.max): append(kind | 26, UInt32(truncatingIfNeeded: number))
        default: append(kind | 27, number)
        }
    }

    /// Writes the head of an array or a map in the place of the byte at `offset`.
    func setHead(at offset: Int, _ major: CBORMajor, _ count: Int) {
        guard count >= 24 else { return bytes[offset] = major.rawValue << 5 | UInt8(count) }
        let end = bytes.count
        appendHead(major, UInt64(count))
        let head = Array(bytes[end...])
        truncate(to: end)
        bytes.replaceSubrange(offset...offset, with: head)
    }

    private func append(_ first: UInt8, _ number: some FixedWidthInteger) {
        bytes.append(first)
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    // MARK: Values

    func append(_ value: Bool) { bytes.append(value ? 0xF5 : 0xF4) }

    func appendNull() { bytes.append(0xF6) }

    @inline(__always)
    func append(_ value: some FixedWidthInteger) {
        if value < 0 {
            appendHead(.negative, UInt64(truncatingIfNeeded: ~value))
        } else {
            appendHead(.unsigned, UInt64(truncatingIfNeeded: value))
        }
    }

    func append(_ value: Float) { append(0xFA, value.bitPattern) }

    /// Appends a number as short as it can be without a loss.
    func append(_ value: Double) {
        if Double(Float(value)) == value { append(Float(value)) } else { append(0xFB, value.bitPattern) }
    }

    func append(_ value: String) {
        var value = value
        value.withUTF8 { append(.text, UnsafeRawBufferPointer($0)) }
    }

    func append(_ value: Data) { value.withUnsafeBytes { append(.bytes, $0) } }

    func append(_ value: [UInt8]) { value.withUnsafeBytes { append(.bytes, $0) } }

    func append(_ major: CBORMajor, _ content: UnsafeRawBufferPointer) {
        appendHead(major, UInt64(content.count))
        bytes.append(contentsOf: content)
    }

    /// Appends a value of a type that is one value of CBOR. Calls `encode` for other types.
    ///
    /// A cast to a protocol searches its conformances. Comparing types costs nothing where the type is known at compile
    /// time. `unsafeBitCast` is safe because both types are the same.
    @inline(__always)
    func append<Value: Encodable>(_ value: Value, orElse encode: () throws -> Void) rethrows {
        if Value.self == String.self { return append(unsafeBitCast(value, to: String.self)) }
        if Value.self == Int.self { return append(unsafeBitCast(value, to: Int.self)) }
        if Value.self == Double.self { return append(unsafeBitCast(value, to: Double.self)) }
        if Value.self == Bool.self { return append(unsafeBitCast(value, to: Bool.self)) }
        if Value.self == Float.self { return append(unsafeBitCast(value, to: Float.self)) }
        if Value.self == UInt8.self { return append(unsafeBitCast(value, to: UInt8.self)) }
        if Value.self == UInt16.self { return append(unsafeBitCast(value, to: UInt16.self)) }
        if Value.self == UInt32.self { return append(unsafeBitCast(value, to: UInt32.self)) }
        if Value.self == UInt64.self { return append(unsafeBitCast(value, to: UInt64.self)) }
        if Value.self == UInt.self { return append(unsafeBitCast(value, to: UInt.self)) }
        if Value.self == Int8.self { return append(unsafeBitCast(value, to: Int8.self)) }
        if Value.self == Int16.self { return append(unsafeBitCast(value, to: Int16.self)) }
        if Value.self == Int32.self { return append(unsafeBitCast(value, to: Int32.self)) }
        if Value.self == Int64.self { return append(unsafeBitCast(value, to: Int64.self)) }
        if Value.self == Data.self { return append(unsafeBitCast(value, to: Data.self)) }
        if Value.self == [UInt8].self { return append(unsafeBitCast(value, to: [UInt8].self)) }
        try encode()
    }
}
