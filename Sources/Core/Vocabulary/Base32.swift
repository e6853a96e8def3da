/// Base 32 (RFC 4648) in lower case and without padding.
package enum Base32 {
    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        String(unsafeUninitializedCapacity: (bytes.count * 8 + 4) / 5) { text in
            var count = 0
            func write(_ value: Int) {
                text[count] = character(UInt8(truncatingIfNeeded: value & 31))
                count += 1
            }
            var buffer = 0
            var bits = 0
            for byte in bytes {
                buffer = buffer << 8 | Int(byte)
                bits += 8
                while bits >= 5 {
                    bits -= 5
                    write(buffer >> bits)
                }
                buffer &= 1 << bits - 1
            }
            if bits > 0 { write(buffer << (5 - bits)) }
            return count
        }
    }

    /// Returns the character for a number below 32.
    static func character(_ value: UInt8) -> UInt8 {
        value < 26 ? UInt8(ascii: "a") + value : UInt8(ascii: "2") + (value - 26)
    }

    /// Returns the number for which a character stands, or nil if it stands for none.
    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a")
        case UInt8(ascii: "2")...UInt8(ascii: "7"): character - UInt8(ascii: "2") + 26
        default: nil
        }
    }

    /// Returns the bytes that `text` encodes. Nil if `text` has a character outside the
    /// alphabet, or if leftover bits are not zero.
    static func decode(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer = 0
        var bits = 0
        for character in text.utf8 {
            guard let value = value(of: character) else { return nil }
            buffer = buffer << 5 | Int(value)
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(buffer >> bits & 255))
                buffer &= 1 << bits - 1
            }
        }
        return bits < 5 && buffer == 0 ? bytes : nil
    }
}
