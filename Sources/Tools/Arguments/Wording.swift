/// Formats text that is shown to people.
enum Wording {
    /// Returns typed text in quotation marks, shortened if it is long.
    static func quoted(_ text: String) -> String {
        let longest = 60
        return "\"\(text.count > longest ? text.prefix(longest) + "…" : text[...])\""
    }

    /// Returns `text` on one line, without characters that move a cursor or change the direction of text.
    static func sanitized(_ text: String) -> String {
        let scalars = text.unicodeScalars.map { scalar -> Unicode.Scalar in
            switch scalar.properties.generalCategory {
            case _ where scalar == "\n": " "
            case .control, .format, .lineSeparator, .paragraphSeparator: "\u{FFFD}"
            default: scalar
            }
        }
        return String(String.UnicodeScalarView(scalars))
    }

    /// Returns a list such as `tcp, bluetooth or memory`.
    static func list(_ words: [String], _ conjunction: String = "or") -> String {
        guard let last = words.last, words.count > 1 else { return words.first ?? "" }
        return words.dropLast().joined(separator: ", ") + " \(conjunction) \(last)"
    }

    /// Returns the words of `text` on one line, with single spaces between them.
    static func onOneLine(_ text: String) -> String {
        text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}
