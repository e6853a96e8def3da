import Terminal

/// A line of words for a person, of parts that may be tinted. What strangers have put into it can do no harm.
struct Line: Hashable, Sendable {
    /// How a part looks, where there are colours.
    enum Tint: Hashable, Sendable {
        case plain
        /// As it should be.
        case good
        /// Works, but.
        case doubtful
        /// Does not work.
        case bad
        /// What one reads first.
        case strong
        /// What one reads last.
        case faint

        fileprivate var code: String? {
            switch self {
            case .plain: nil
            case .good: "32"
            case .doubtful: "33"
            case .bad: "31"
            case .strong: "1"
            case .faint: "2"
            }
        }
    }

    private struct Part: Hashable {
        var words: CellText
        var tint: Tint
    }

    private var parts: [Part]

    /// A line of one part.
    init(_ words: some StringProtocol, _ tint: Tint = .plain) {
        parts = [Part(words: CellText(words), tint: tint)]
    }

    /// How many columns it takes.
    var columns: Int { parts.reduce(0) { $0 + $1.words.columns } }

    /// One behind the other.
    static func + (left: Line, right: Line) -> Line {
        var line = left
        line.parts += right.parts
        return line
    }

    /// The same with blanks behind it, or before it, so that it takes `columns` where it takes less.
    func padded(to columns: Int, atStart: Bool = false) -> Line {
        let blanks = Line(String(repeating: " ", count: max(columns - self.columns, 0)))
        return atStart ? blanks + self : self + blanks
    }

    /// As much of it as `columns` hold.
    func fitting(_ columns: Int) -> Line {
        var line = self
        var room = columns
        for index in parts.indices {
            line.parts[index].words = parts[index].words.fitting(room)
            room -= line.parts[index].words.columns
        }
        return line
    }

    /// As it is written, without its end.
    func text(colours: Bool) -> String {
        parts.map { part in
            guard colours, let code = part.tint.code else { return part.words.string }
            return "\u{1B}[\(code)m\(part.words.string)\u{1B}[0m"
        }.joined()
    }
}

extension Line: ExpressibleByStringInterpolation {
    /// Puts lines into a line as they are, and everything else as plain words.
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
