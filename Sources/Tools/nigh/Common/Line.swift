import Terminal

/// A line of text for a person, made of parts that may be tinted. Text that came from other peers cannot do harm on the
/// terminal.
struct Line: Hashable, Sendable {
    /// How a part looks on a terminal with colours.
    enum Tint: Hashable, Sendable {
        case plain
        /// As it should be.
        case good
        /// Works, with a reservation.
        case warning
        /// Does not work.
        case bad
        /// For the reader to see first.
        case strong
        /// For the reader to see last.
        case faint
        /// A picture in white on black.
        case paper

        fileprivate var code: String? {
            switch self {
            case .plain: nil
            case .good: "32"
            case .warning: "33"
            case .bad: "31"
            case .strong: "1"
            case .faint: "2"
            case .paper: "97;40"
            }
        }
    }

    private struct Part: Hashable {
        var text: CellText
        var tint: Tint
    }

    private var parts: [Part]

    /// Creates a line of one part.
    init(_ text: some StringProtocol, _ tint: Tint = .plain) {
        parts = [Part(text: CellText(text), tint: tint)]
    }

    /// The number of columns that the line takes.
    var columns: Int { parts.reduce(0) { $0 + $1.text.columns } }

    /// Joins two lines into one.
    static func + (left: Line, right: Line) -> Line {
        var line = left
        line.parts += right.parts
        return line
    }

    /// The line padded with blanks to `columns`, after it or before it. A longer line stays as it is.
    func padded(to columns: Int, atStart: Bool = false) -> Line {
        let blanks = Line(String(repeating: " ", count: max(columns - self.columns, 0)))
        return atStart ? blanks + self : self + blanks
    }

    /// The beginning of the line that fits into `columns`.
    func fitting(_ columns: Int) -> Line {
        var line = self
        var room = columns
        for index in parts.indices {
            line.parts[index].text = parts[index].text.fitting(room)
            room -= line.parts[index].text.columns
        }
        return line
    }

    /// The line as it is written, without its line end.
    func text(colours: Bool) -> String {
        parts.map { part in
            guard colours, let code = part.tint.code else { return part.text.string }
            return "\u{1B}[\(code)m\(part.text.string)\u{1B}[0m"
        }.joined()
    }
}

extension Line: ExpressibleByStringInterpolation {
    /// Inserts lines as they are, and everything else as plain text.
    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var line = Line("")

        init(literalCapacity: Int, interpolationCount: Int) {}

        mutating func appendLiteral(_ literal: String) { if !literal.isEmpty { line = line + Line(literal) } }
        mutating func appendInterpolation(_ other: Line) { line = line + other }
        mutating func appendInterpolation(_ value: some CustomStringConvertible) {
            line = line + Line("\(value)" as String)
        }
    }

    init(stringInterpolation: StringInterpolation) { self = stringInterpolation.line }
    init(stringLiteral value: String) { self.init(value) }
}
