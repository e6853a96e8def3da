import Glibc
import Testing

/// docs/reference/PROTOCOL.md as tests read it: its tables, and the bytes of its examples.
struct ProtocolPage {
    private let lines: [Substring]

    init(_ name: String = "PROTOCOL.md") throws {
        let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let file = try #require(fopen("/\(root)/docs/reference/\(name)", "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 18)
        bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
        let text = String(decoding: bytes, as: UTF8.self)
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    struct Missing: Error {
        let what: String
    }

    /// The lines from the heading that contains `heading` to the next one.
    private func section(_ heading: String) throws -> ArraySlice<Substring> {
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
        return rest.dropFirst(2).prefix { $0.hasPrefix("|") }.map { line in
            line.split(separator: "|").map { cell in
                let trimmed = cell.drop { $0 == " " }
                return String(trimmed.reversed().drop { $0 == " " }.reversed())
            }
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

    /// What one side sends in an example.
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
    private enum Part {
        case bytes([UInt8])
        case anything
    }

    private var parts: [Part] = [.bytes([])]

    init(_ text: String) throws {
        var bytes: [UInt8] = []
        var rest = text[...]
        while true {
            rest = rest.drop { $0 == " " }
            guard let first = rest.first else { break }
            if first == "\"" {
                let quoted = rest.dropFirst().prefix { $0 != "\"" }
                bytes += Array(quoted.utf8)
                rest = rest.dropFirst(quoted.count + 2)
                continue
            }
            let word = rest.prefix { $0 != " " }
            rest = rest.dropFirst(word.count)
            if first == "×" {
                let count = try #require(Int(word.dropFirst()), "\(word)")
                let last = try #require(bytes.last)
                bytes += [UInt8](repeating: last, count: count - 1)
            } else if first == "…" {
                let next = try #require(UInt8(rest.drop { $0 == " " }.prefix(2), radix: 16))
                let isRow = bytes.count > 1 && bytes[bytes.count - 2] &+ 1 == bytes[bytes.count - 1]
                if isRow, let last = bytes.last, next > last {
                    bytes += Array(last + 1..<next)
                } else {
                    parts += [.bytes(bytes), .anything]
                    bytes = []
                }
            } else {
                let byte = word.count == 2 ? UInt8(word, radix: 16) : nil
                bytes.append(try #require(byte, "what is \(word)?"))
            }
        }
        parts.append(.bytes(bytes))
    }

    /// The bytes, if all of them are written out.
    var exact: [UInt8]? {
        var all: [UInt8] = []
        for part in parts {
            guard case .bytes(let bytes) = part else { return nil }
            all += bytes
        }
        return all
    }

    /// Whether `bytes` are what is written.
    func matches(_ bytes: [UInt8]) -> Bool {
        if let exact { return exact == bytes }
        var written: [[UInt8]] = []
        for case .bytes(let part) in parts where !part.isEmpty { written.append(part) }
        return written.count == 2 && bytes.starts(with: written[0])
            && bytes.suffix(written[1].count) == written[1][...]
    }
}
