/// Splits bytes that arrive in pieces into lines.
struct LineBuffer {
    private var rest: [UInt8] = []

    /// Returns the lines that `bytes` complete.
    mutating func take(_ bytes: some Sequence<UInt8>) -> [String] {
        rest += bytes
        var lines: [String] = []
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            lines.append(String(decoding: rest[..<end], as: UTF8.self))
            rest.removeSubrange(...end)
        }
        return lines
    }

    /// Removes and returns what follows the last complete line.
    mutating func takeRest() -> String? {
        guard !rest.isEmpty else { return nil }
        defer { rest = [] }
        return String(decoding: rest, as: UTF8.self)
    }
}
