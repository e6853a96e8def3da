/// Formats bytes for people: sixteen per line, as hexadecimal digits and as text.
enum HexDump {
    private static let columns = 16

    /// The lines, each beginning with its offset.
    static func lines(of bytes: [UInt8]) -> [String] {
        stride(from: 0, to: bytes.count, by: columns).map { start in
            let row = bytes[start..<min(start + columns, bytes.count)]
            let place = String(start, radix: 16)
            let digits = row.enumerated().map { ($0 == columns / 2 ? " " : "") + hex($1) }.joined(
                separator: " ")
            let text = row.map { (0x20..<0x7F).contains($0) ? String(UnicodeScalar($0)) : "." }.joined()
            let blanks = String(repeating: " ", count: columns * 3 - digits.count + 1)
            return "    " + String(repeating: "0", count: max(6 - place.count, 0)) + place
                + "  \(digits)\(blanks)\(text)"
        }
    }

    /// All bytes as one string of digits.
    static func digits(of bytes: [UInt8]) -> String { bytes.map(hex).joined() }

    private static func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }
}
