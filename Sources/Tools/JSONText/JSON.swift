/// A value of JSON (RFC 8259), to be written: the members of an object keep their order, numbers their kind.
public indirect enum JSON: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int)
    /// Written as null where it is no number, since JSON has no way to say so.
    case number(Double)
    case text(String)
    case list([JSON])
    case object([Member])

    /// One name and its value in an object.
    public struct Member: Hashable, Sendable {
        /// Unique in its object; whoever makes the object sees to that.
        public let name: String
        /// What it is.
        public let value: JSON

        /// A member.
        public init(_ name: String, _ value: JSON) {
            self.name = name
            self.value = value
        }
    }

    /// The value of `text`, or null where there is none.
    public init(_ text: String?) { self = text.map(JSON.text) ?? .null }

    /// The value of `number`, or null where there is none.
    public init(_ number: Int?) { self = number.map(JSON.integer) ?? .null }

    /// The value of `number`, or null where there is none.
    public init(_ number: Double?) { self = number.map(JSON.number) ?? .null }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// A text.
    public init(stringLiteral value: String) { self = .text(value) }
    /// A whole number.
    public init(integerLiteral value: Int) { self = .integer(value) }
    /// True or false.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// A list.
    public init(arrayLiteral elements: JSON...) { self = .list(elements) }
    /// The members in the order in which they are written here.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(elements.map { Member($0.0, $0.1) })
    }
}

extension JSON: CustomStringConvertible {
    /// The value in one line of ASCII without spaces: what is not ASCII, or would end a line, is escaped.
    public var description: String {
        var text = ""
        write(to: &text)
        return text
    }

    private func write(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let value): text += "\(value)"
        // Swift writes the shortest digits that read back as the same number, in a form that JSON has, too.
        case .number(let value): text += value.isFinite ? "\(value)" : "null"
        case .text(let value): Self.write(value, to: &text)
        case .list(let values):
            text += "["
            for (index, value) in values.enumerated() {
                if index > 0 { text += "," }
                value.write(to: &text)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { text += "," }
                Self.write(member.name, to: &text)
                text += ":"
                member.value.write(to: &text)
            }
            text += "}"
        }
    }

    private static func write(_ value: String, to text: inout String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case " "..."~": text.unicodeScalars.append(scalar)
            default: for unit in scalar.utf16 { text += "\\u" + hexadecimal(unit) }
            }
        }
        text += "\""
    }

    private static func hexadecimal(_ unit: UInt16) -> String {
        let digits = String(unit, radix: 16)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}
