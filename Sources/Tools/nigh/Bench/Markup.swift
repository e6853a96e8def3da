import ProgramLife

/// Text of a page, in which what strangers have said is text and nothing else.
struct Markup: ExpressibleByStringInterpolation, CustomStringConvertible, Sendable {
    let description: String

    /// What is written in the source of this program, as it is.
    init(stringLiteral value: String) { description = value }

    init(stringInterpolation: StringInterpolation) { description = stringInterpolation.text }

    static func + (left: Markup, right: Markup) -> Markup { "\(left)\(right)" }

    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }

        mutating func appendLiteral(_ literal: String) { text += literal }

        /// Markup is put in as it is.
        mutating func appendInterpolation(_ markup: Markup) { text += markup.description }

        /// Pieces of it, one behind the other.
        mutating func appendInterpolation(_ pieces: [Markup]) {
            for piece in pieces { text += piece.description }
        }

        /// Everything else is escaped, so that it can stand between tags and in quoted attributes.
        mutating func appendInterpolation(_ value: some CustomStringConvertible) {
            for scalar in LineOutput.harmless(value.description).unicodeScalars {
                switch scalar {
                case "&": text += "&amp;"
                case "<": text += "&lt;"
                case ">": text += "&gt;"
                case "\"": text += "&quot;"
                case "'": text += "&#39;"
                default: text.unicodeScalars.append(scalar)
                }
            }
        }
    }
}
