/// A token of Swift source. White space and comments are none.
struct SwiftToken: Equatable {
    enum Kind: Equatable {
        /// A name or a keyword.
        case word
        case integer
        /// Any other number.
        case number
        /// A whole string, with its interpolations.
        case string
        /// An operator, by its position.
        case prefix, infix, postfix
        /// A bracket, a comma and the like.
        case mark
        /// A line that begins with `#`.
        case directive
    }

    let kind: Kind
    let text: String
    /// The position in the file's bytes.
    let bytes: Range<Int>
    /// Counted from 1.
    let line: Int
    /// Whether it is the first token on its line.
    let isFirstOnLine: Bool
    /// Whether the token is an operator between spaces.
    var isSpaced = false

    func isMark(_ text: String) -> Bool { kind == .mark && self.text == text }
    func isWord(_ text: String) -> Bool { kind == .word && self.text == text }
}
