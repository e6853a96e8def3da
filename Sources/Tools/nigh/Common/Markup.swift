import ProgramSupport

/// HTML text in which everything that comes from other peers is escaped.
struct Markup: ExpressibleByStringInterpolation, CustomStringConvertible, Sendable {
    let description: String

    /// Creates markup from a literal in the source, unchanged.
    init(stringLiteral value: String) { description = value }

    init(stringInterpolation: StringInterpolation) { description = stringInterpolation.text }

    static func + (left: Markup, right: Markup) -> Markup { "\(left)\(right)" }

    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }

        mutating func appendLiteral(_ literal: String) { text += literal }

        /// Inserts markup unchanged.
        mutating func appendInterpolation(_ markup: Markup) { text += markup.description }

        /// Inserts pieces of markup, one after the other.
        mutating func appendInterpolation(_ pieces: [Markup]) {
            for piece in pieces { text += piece.description }
        }

        /// Inserts any other value escaped, so that it can stand between tags and in quoted attributes.
        mutating func appendInterpolation(_ value: some CustomStringConvertible) {
            for scalar in LineOutput.sanitized(value.description).unicodeScalars {
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
