/// How what is told to a person is put.
enum Wording {
    /// What somebody typed, in quotation marks: on one line, not too long, and without what moves a cursor.
    static func quoted(_ text: String) -> String {
        let longest = 60
        let shown = text.count > longest ? text.prefix(longest) + "…" : text[...]
        let harmless = shown.unicodeScalars.map { scalar -> Unicode.Scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: "\u{FFFD}"
            default: scalar
            }
        }
        return "\"\(String(String.UnicodeScalarView(harmless)))\""
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
