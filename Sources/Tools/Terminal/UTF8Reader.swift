/// Decodes UTF-8 that comes in pieces. Bytes that are not UTF-8 become U+FFFD, as Unicode recommends: one for each part
/// that could have begun a scalar.
struct UTF8Reader: Sendable {
    private var value: UInt32 = 0
    private var missing = 0
    /// The values that the next byte may have. After some first bytes there are fewer, which excludes overlong scalars,
    /// surrogates and values above U+10FFFF.
    private var expected: ClosedRange<UInt8> = 0x80...0xBF

    /// Whether a scalar has begun and not ended.
    var isInside: Bool { missing > 0 }

    /// Decodes a byte. Calls `emit` with none, one or two scalars.
    mutating func decode(_ byte: UInt8, _ emit: (Unicode.Scalar) -> Void) {
        if isInside {
            if expected.contains(byte) {
                value = value << 6 | UInt32(byte & 0x3F)
                missing -= 1
                expected = 0x80...0xBF
                if missing == 0 { emit(Unicode.Scalar(value) ?? "\u{FFFD}") }
                return
            }
            emit("\u{FFFD}")
            missing = 0
        }
        begin(byte, emit)
    }

    private mutating func begin(_ byte: UInt8, _ emit: (Unicode.Scalar) -> Void) {
        expected = 0x80...0xBF
        switch byte {
        case 0x00...0x7F: emit(Unicode.Scalar(byte))
        case 0xC2...0xDF: (value, missing) = (UInt32(byte & 0x1F), 1)
        case 0xE0...0xEF:
            (value, missing) = (UInt32(byte & 0x0F), 2)
            if byte == 0xE0 { expected = 0xA0...0xBF }
            if byte == 0xED { expected = 0x80...0x9F }
        case 0xF0...0xF4:
            (value, missing) = (UInt32(byte & 0x07), 3)
            if byte == 0xF0 { expected = 0x90...0xBF }
            if byte == 0xF4 { expected = 0x80...0x8F }
        default: emit("\u{FFFD}")
        }
    }
}
