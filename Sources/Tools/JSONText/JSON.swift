/// A JSON value (RFC 8259) to be written. The members of an object keep their order, and numbers keep their kind.
public indirect enum JSON: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int)
    /// A number; written as null if it is not finite, because JSON has no way to write that.
    case number(Double)
    case text(String)
    case list([JSON])
    case object([Member])

    /// A name and its value in an object.
    public struct Member: Hashable, Sendable {
        /// The name. The code that makes the object makes sure that it is unique there.
        public let name: String
        /// The value.
        public let value: JSON

        /// Creates a member.
        public init(_ name: String, _ value: JSON) {
            self.name = name
            self.value = value
        }
    }

    /// Creates the value of `text`, or null if it is nil.
    public init(_ text: String?) { self = text.map(JSON.text) ?? .null }

    /// Creates the value of `number`, or null if it is nil.
    public init(_ number: Int?) { self = number.map(JSON.integer) ?? .null }

    /// Creates the value of `number`, or null if it is nil.
    public init(_ number: Double?) { self = number.map(JSON.number) ?? .null }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Creates a text.
    public init(stringLiteral value: String) { self = .text(value) }
    /// Creates an integer.
    public init(integerLiteral value: Int) { self = .integer(value) }
    /// Creates true or false.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates a list.
    public init(arrayLiteral elements: JSON...) { self = .list(elements) }
    /// Creates an object. Its members keep the order in which they are written.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(elements.map { Member($0.0, $0.1) })
    }
}

extension JSON: CustomStringConvertible {
    /// The value in one line of ASCII without spaces. Characters that are not ASCII, or would end the line, are
    /// escaped.
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
        // Swift writes the shortest digits that read back as the same number, in a form that JSON also has.
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
