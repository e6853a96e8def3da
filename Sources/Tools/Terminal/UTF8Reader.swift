/// Makes scalars of bytes that come in pieces. What is no UTF-8 becomes U+FFFD, as Unicode recommends: one for each part that could
/// have begun a scalar.
struct UTF8Reader: Sendable {
    private var value: UInt32 = 0
    private var missing = 0
    /// What the next byte has to be: narrower after some first bytes, so that no scalar is written longer than it need be.
    private var expected: ClosedRange<UInt8> = 0x80...0xBF

    /// Whether a scalar has begun and not ended.
    var isInside: Bool { missing > 0 }

    /// Takes a byte; gives none, one or two scalars.
    mutating func take(_ byte: UInt8, _ give: (Unicode.Scalar) -> Void) {
        if isInside {
            if expected.contains(byte) {
                value = value << 6 | UInt32(byte & 0x3F)
                missing -= 1
                expected = 0x80...0xBF
                if missing == 0 { give(Unicode.Scalar(value) ?? "\u{FFFD}") }
                return
            }
            give("\u{FFFD}")
            missing = 0
        }
        begin(byte, give)
    }

    private mutating func begin(_ byte: UInt8, _ give: (Unicode.Scalar) -> Void) {
        expected = 0x80...0xBF
        switch byte {
        case 0x00...0x7F: give(Unicode.Scalar(byte))
        case 0xC2...0xDF: (value, missing) = (UInt32(byte & 0x1F), 1)
        case 0xE0...0xEF:
            (value, missing) = (UInt32(byte & 0x0F), 2)
            if byte == 0xE0 { expected = 0xA0...0xBF }
            if byte == 0xED { expected = 0x80...0x9F }
        case 0xF0...0xF4:
            (value, missing) = (UInt32(byte & 0x07), 3)
            if byte == 0xF0 { expected = 0x90...0xBF }
            if byte == 0xF4 { expected = 0x80...0x8F }
        default: give("\u{FFFD}")
        }
    }
}
