import NighTestKit
import Testing

/// docs/reference/PROTOCOL.md as tests read it: its tables, and the bytes of its examples.
struct ProtocolPage {
    private let lines: [Substring]

    init(_ name: String = "PROTOCOL.md") {
        let text = RepositoryFile.text(of: "docs/reference/\(name)")
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    struct Missing: Error {
        let what: String
    }

    /// The lines from the heading that contains `heading` to the next one.
    func section(_ heading: String) throws -> ArraySlice<Substring> {
        guard let start = lines.firstIndex(where: { $0.hasPrefix("#") && $0.contains(heading) }) else {
            throw Missing(what: heading)
        }
        let rest = lines[(start + 1)...]
        return rest.prefix { !$0.hasPrefix("## ") && !$0.hasPrefix("### ") }
    }

    /// The rows of the table with the heading row `head`, split into cells, without that row.
    func table(_ head: String, in heading: String) throws -> [[String]] {
        let rest = try section(heading).drop { $0 != head }
        guard !rest.isEmpty else { throw Missing(what: head) }
        return rest.dropFirst(2).prefix { $0.hasPrefix("|") }.map(Self.cells)
    }

    /// The rows of all tables.
    var allRows: [[String]] { lines.filter { $0.hasPrefix("|") }.map(Self.cells) }

    private static func cells(_ row: Substring) -> [String] {
        row.split(separator: "|").map { cell in
            let trimmed = cell.drop { $0 == " " }
            return String(trimmed.reversed().drop { $0 == " " }.reversed())
        }
    }

    /// The first block of literal lines of a section.
    func block(in heading: String) throws -> [String] {
        let rest = try section(heading).drop { $0 != "```" }.dropFirst()
        return rest.prefix { $0 != "```" }.map(String.init)
    }

    /// The line of a section that begins with `beginning`.
    func line(_ beginning: String, in heading: String) throws -> String {
        guard let line = try section(heading).first(where: { $0.hasPrefix(beginning) }) else {
            throw Missing(what: beginning)
        }
        return String(line)
    }

    /// The bytes that one side sends in an example.
    struct Step {
        let isDialling: Bool
        let bytes: PatternOfBytes
    }

    /// An example, step by step. Lines without an arrow continue the one before.
    func example(in heading: String) throws -> [Step] {
        var texts: [(isDialling: Bool, text: String)] = []
        for line in try block(in: heading) {
            let words = Self.withoutRemark(line)
            guard let first = words.first else { continue }
            if first == "→" || first == "←" {
                texts.append((first == "→", String(words.dropFirst())))
            } else if !texts.isEmpty, first == " " {
                texts[texts.count - 1].text += " " + words
            }
        }
        return try texts.map { Step(isDialling: $0.isDialling, bytes: try PatternOfBytes($0.text)) }
    }

    private static func withoutRemark(_ line: String) -> String {
        var isQuoted = false
        return String(
            line.prefix { character in
                if character == "\"" { isQuoted.toggle() }
                return isQuoted || character != "#"
            })
    }
}

/// Bytes as the page writes them: `01 A1 ×32 "text"`. `00 01 … 1F` means all bytes between them. If the two before the
/// dots do not count up, the dots mean any bytes.
struct PatternOfBytes {
    /// The bytes before, between and behind the dots that mean any bytes.
    private var parts: [[UInt8]] = []

    init(_ text: String) throws {
        var bytes: [UInt8] = []
        var rest = text.drop { $0 == " " }
        while let first = rest.first {
            if first == "\"" {
                let quoted = rest.dropFirst().prefix { $0 != "\"" }
                bytes += Array(quoted.utf8)
                rest = rest.dropFirst(quoted.count + 2).drop { $0 == " " }
                continue
            }
            let word = rest.prefix { $0 != " " }
            rest = rest.dropFirst(word.count).drop { $0 == " " }
            switch first {
            case "×":
                let (count, last) = (try #require(Int(word.dropFirst())), try #require(bytes.last))
                bytes += [UInt8](repeating: last, count: count - 1)
            case "…":
                let next = try #require(UInt8(rest.prefix(2), radix: 16))
                if let last = bytes.last, next > last, bytes.suffix(2).first == last &- 1 {
                    bytes += Array(last + 1..<next)
                } else {
                    parts.append(bytes)
                    bytes = []
                }
            default: bytes.append(try #require(UInt8(word, radix: 16), "what is \(word)?"))
            }
        }
        parts.append(bytes)
    }

    /// The bytes, if all of them are written out.
    var exact: [UInt8]? { parts.count == 1 ? parts[0] : nil }

    /// Whether `bytes` are what is written.
    func matches(_ bytes: [UInt8]) -> Bool {
        parts.count == 1 ? parts[0] == bytes : bytes.starts(with: parts[0]) && bytes.ends(with: parts[1])
    }
}

extension [UInt8] {
    /// The bytes of hexadecimal digits; other characters are left out.
    init(hexadecimal text: String) {
        let digits = text.compactMap { $0.hexDigitValue.map(UInt8.init) }
        self = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    fileprivate func ends(with other: [UInt8]) -> Bool { suffix(other.count).elementsEqual(other) }
}
