/// How what is told to a person is put.
enum Wording {
    /// What somebody typed, in quotation marks, and not too long.
    static func quoted(_ text: String) -> String {
        let longest = 60
        return "\"\(text.count > longest ? text.prefix(longest) + "…" : text[...])\""
    }

    /// On one line, and without what moves a cursor or turns the text round.
    static func harmless(_ text: String) -> String {
        let scalars = text.unicodeScalars.map { scalar -> Unicode.Scalar in
            switch scalar.properties.generalCategory {
            case _ where scalar == "\n": " "
            case .control, .format, .lineSeparator, .paragraphSeparator: "\u{FFFD}"
            default: scalar
            }
        }
        return String(String.UnicodeScalarView(scalars))
    }

    /// `tcp, bluetooth or memory`.
    static func list(_ words: [String], _ conjunction: String = "or") -> String {
        guard let last = words.last, words.count > 1 else { return words.first ?? "" }
        return words.dropLast().joined(separator: ", ") + " \(conjunction) \(last)"
    }

    /// The same words on one line, with single spaces between them.
    static func onOneLine(_ text: String) -> String {
        text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}
