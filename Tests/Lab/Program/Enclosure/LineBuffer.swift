/// Cuts what comes in pieces into lines.
struct LineBuffer {
    private var rest: [UInt8] = []

    /// The lines that `bytes` complete.
    mutating func take(_ bytes: some Sequence<UInt8>) -> [String] {
        rest += bytes
        var lines: [String] = []
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            lines.append(String(decoding: rest[..<end], as: UTF8.self))
            rest.removeSubrange(...end)
        }
        return lines
    }

    /// What stood behind the last line's end.
    mutating func takeRest() -> String? {
        guard !rest.isEmpty else { return nil }
        defer { rest = [] }
        return String(decoding: rest, as: UTF8.self)
    }
}
