/// A piece of Swift source that has a meaning of its own; white space and comments are none.
struct SwiftToken: Equatable {
    enum Kind: Equatable {
        /// A name or a keyword.
        case word
        case integer
        /// Any other number.
        case number
        /// A whole string, with what is interpolated in it.
        case string
        /// An operator, by where it stands.
        case prefix, infix, postfix
        /// A bracket, a comma and the like.
        case mark
        /// A line that begins with `#`.
        case directive
    }

    let kind: Kind
    let text: String
    /// Where it lies in the file's bytes.
    let bytes: Range<Int>
    /// Counted from 1.
    let line: Int
    /// Whether nothing stands before it on its line.
    let isFirstOnLine: Bool
    /// Whether an operator stands between spaces.
    var isSpaced = false

    func isMark(_ text: String) -> Bool { kind == .mark && self.text == text }
    func isWord(_ text: String) -> Bool { kind == .word && self.text == text }
}
