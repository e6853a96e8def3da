import NighBluetooth

/// A value as a device sends it. It is encoded by the Bluetooth specification, independently of the code under test.
indirect enum SentValue {
    case unsigned(UInt64, bytes: Int)
    case uuid([UInt8])
    case text([UInt8])
    case sequence([SentValue])

    var bytes: [UInt8] {
        switch self {
        case .unsigned(let number, let count):
            let exponent = UInt8(count.trailingZeroBitCount)
            return [1 << 3 | exponent] + Self.bigEndian(number, count)
        case .uuid(let uuid): return [3 << 3 | UInt8(uuid.count.trailingZeroBitCount)] + uuid
        case .text(let text): return Self.counted(4, text)
        case .sequence(let values): return Self.counted(6, values.flatMap(\.bytes))
        }
    }

    static func bigEndian(_ number: UInt64, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
    }

    private static func counted(_ type: UInt8, _ content: [UInt8]) -> [UInt8] {
        content.count < 256
            ? [type << 3 | 5, UInt8(content.count)] + content
            : [type << 3 | 6] + bigEndian(UInt64(content.count), 2) + content
    }
}

/// A record as bluetoothd makes it of the text that a program registers.
struct KeptRecord {
    struct Unreadable: Error {
        let words: String
    }

    private(set) var attributes: [(number: UInt64, value: SentValue)]

    init(_ attributes: [(number: UInt64, value: SentValue)]) { self.attributes = attributes }

    /// Parses the text, which may contain only tags, in the right order.
    init(xml: String, handle: UInt32) throws {
        var tags = try Self.tags(in: xml)[...]
        guard tags.popFirst()?.name == "?xml", tags.popFirst()?.name == "record" else {
            throw Unreadable(words: "it does not begin as a record")
        }
        attributes = [(0, .unsigned(UInt64(handle), bytes: 4))]
        while let tag = tags.popFirst(), tag.name == "attribute" {
            let values = try Self.values(upTo: "/attribute", &tags)
            guard let number = Self.number(tag.values["id"]), values.count == 1 else {
                throw Unreadable(words: "an attribute \(tag)")
            }
            attributes.append((number, values[0]))
        }
        guard tags.isEmpty else { throw Unreadable(words: "something behind the record") }
    }

    /// The list that answers a request for these attributes.
    func list(of wanted: Set<UInt64>) -> SentValue {
        .sequence(
            attributes.filter { wanted.contains($0.number) }.sorted { $0.number < $1.number }
                .flatMap { [.unsigned($0.number, bytes: 2), $0.value] })
    }

    func value(of number: UInt64) -> SentValue? { attributes.first { $0.number == number }?.value }

    private typealias Tag = (name: String, values: [String: String])

    private static func tags(in xml: String) throws -> [Tag] {
        var tags: [Tag] = []
        var rest = xml[...]
        while !rest.isEmpty {
            guard rest.first == "<", let end = rest.firstIndex(of: ">") else {
                throw Unreadable(words: "text outside of tags: \(rest.prefix(40))")
            }
            let inside = rest[rest.index(after: rest.startIndex)..<end]
            rest = rest[rest.index(after: end)...]
            let words = inside.split(separator: " ")
            var values: [String: String] = [:]
            for word in words.dropFirst() {
                let parts = word.split(separator: "\"", omittingEmptySubsequences: false)
                guard parts.count == 3, parts[0].hasSuffix("=") else { continue }
                values[String(parts[0].dropLast())] = String(parts[1])
            }
            tags.append((String(words.first ?? ""), values))
        }
        return tags
    }

    private static func values(upTo end: String, _ tags: inout ArraySlice<Tag>) throws -> [SentValue] {
        var values: [SentValue] = []
        while let tag = tags.popFirst() {
            switch tag.name {
            case end: return values
            case "sequence": values.append(.sequence(try self.values(upTo: "/sequence", &tags)))
            case "uint8": values.append(.unsigned(try number(in: tag), bytes: 1))
            case "uint16": values.append(.unsigned(try number(in: tag), bytes: 2))
            case "uuid":
                let text = tag.values["value"] ?? ""
                let short = number(text).map { SentValue.bigEndian($0, 2) }
                values.append(.uuid(try short ?? bytes(text.filter { $0 != "-" })))
            case "text" where tag.values["encoding"] == "hex":
                values.append(.text(try bytes(tag.values["value"] ?? "")))
            default: throw Unreadable(words: "the tag \(tag.name)")
            }
        }
        throw Unreadable(words: "no \(end)")
    }

    private static func number(in tag: Tag) throws -> UInt64 {
        guard let number = number(tag.values["value"]) else { throw Unreadable(words: "no number in \(tag)") }
        return number
    }

    private static func number(_ text: String?) -> UInt64? {
        guard let text, text.hasPrefix("0x") else { return nil }
        return UInt64(text.dropFirst(2), radix: 16)
    }

    private static func bytes(_ digits: String) throws -> [UInt8] {
        let digits = Array(digits)
        return try stride(from: 0, to: digits.count, by: 2).map { index in
            guard index + 1 < digits.count, let byte = UInt8(String(digits[index...index + 1]), radix: 16)
            else { throw Unreadable(words: "odd digits") }
            return byte
        }
    }
}

/// A device that answers requests for its records, in parts of at most `share` bytes.
struct RecordKeeper {
    var records: [KeptRecord]
    /// The maximum number of bytes of records in one answer.
    var share: Int
    /// The number of requests it received.
    private(set) var questions = 0

    init(_ records: [KeptRecord], share: Int = 65_000) {
        self.records = records
        self.share = share
    }

    /// The answer to a request, which is checked against the specification; nil if it is not a valid request.
    mutating func answer(_ question: [UInt8]) -> [UInt8]? {
        questions += 1
        guard question.count > 5, question[0] == 6,
            question.count == 5 + Int(question[3]) << 8 + Int(question[4])
        else { return nil }
        var rest = question[5...]
        guard DataElement(from: &rest)?.sequence?.count == 1, rest.count > 2 else { return nil }
        let room = rest.prefix(2).reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(2)
        guard room >= 7, let wanted = DataElement(from: &rest)?.sequence, rest.first == UInt8(rest.count - 1)
        else { return nil }
        let numbers = Set(wanted.compactMap(\.unsigned))
        let all = SentValue.sequence(records.map { $0.list(of: numbers) }).bytes
        let start = rest.dropFirst().reduce(0) { $0 << 8 | Int($1) }
        let part = Array(all.dropFirst(start).prefix(min(share, room)))
        let isLast = start + part.count == all.count
        let continuation =
            isLast ? [0] : [4] + SentValue.bigEndian(UInt64(start + part.count), 4)
        return Self.packet(part, continuation, number: Array(question[1...2]))
    }

    /// An answer with these bytes.
    static func packet(_ bytes: [UInt8], _ continuation: [UInt8], number: [UInt8]) -> [UInt8] {
        let content = SentValue.bigEndian(UInt64(bytes.count), 2) + bytes + continuation
        return [7] + number + SentValue.bigEndian(UInt64(content.count), 2) + content
    }
}
