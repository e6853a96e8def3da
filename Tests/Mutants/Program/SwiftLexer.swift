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

    /// By how much it changes the depth of brackets.
    var nesting: Int {
        guard kind == .mark else { return 0 }
        return ["(", "[", "{"].contains(text) ? 1 : [")", "]", "}"].contains(text) ? -1 : 0
    }
}

/// Cuts Swift source into tokens. It knows only the syntax that finding places takes, and nothing of types. The
/// compiler refuses what it gets wrong.
struct SwiftLexer {
    private let bytes: [UInt8]
    private var position = 0
    private var line = 1
    private var lineIsEmpty = true
    private var tokens: [SwiftToken] = []

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Returns all tokens of `source`, in order.
    static func tokens(of source: [UInt8]) -> [SwiftToken] {
        var lexer = SwiftLexer(source)
        lexer.run()
        return lexer.tokens
    }

    private static let operatorBytes = Set("/=-+!*%<>&|^~?".utf8)
    private static let marks = Set("()[]{},;:@\\`.".utf8)

    private mutating func run() {
        while position < bytes.count {
            let byte = bytes[position]
            switch byte {
            case "\n":
                line += 1
                lineIsEmpty = true
                position += 1
            case " ", "\t", "\r": position += 1
            case "/" where peek(1) == "/": skipLine()
            case "/" where peek(1) == "*": skipComment()
            case "\"": string(hashes: 0)
            case "#": hash()
            case "0"..."9": number()
            case _ where Self.isWordByte(byte): word()
            case "." where peek(1) == ".": operators(with: byte)
            case _ where Self.operatorBytes.contains(byte): operators(with: nil)
            case _ where Self.marks.contains(byte): add(.mark, to: position + 1)
            default: position += 1
            }
        }
    }

    private func peek(_ offset: Int) -> UInt8? {
        bytes.indices.contains(position + offset) ? bytes[position + offset] : nil
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case "a"..."z", "A"..."Z", "0"..."9", "_", "$", 0x80...: true
        default: false
        }
    }

    private mutating func add(_ kind: SwiftToken.Kind, to end: Int, isSpaced: Bool = false) {
        let range = position..<end
        tokens.append(
            SwiftToken(
                kind: kind, text: String(decoding: bytes[range], as: UTF8.self), bytes: range, line: line,
                isFirstOnLine: lineIsEmpty, isSpaced: isSpaced))
        lineIsEmpty = false
        line += bytes[range].count { $0 == "\n" }
        position = end
    }

    private mutating func skipLine() {
        while position < bytes.count, bytes[position] != "\n" { position += 1 }
    }

    private mutating func skipComment() {
        var depth = 0
        repeat {
            if peek(0) == "/", peek(1) == "*" {
                depth += 1
                position += 2
            } else if peek(0) == "*", peek(1) == "/" {
                depth -= 1
                position += 2
            } else {
                if peek(0) == "\n" { line += 1 }
                position += 1
            }
        } while depth > 0 && position < bytes.count
    }

    private mutating func word() {
        var end = position
        while end < bytes.count, Self.isWordByte(bytes[end]) { end += 1 }
        add(.word, to: end)
    }

    private mutating func number() {
        var end = position
        var kind = SwiftToken.Kind.integer
        while end < bytes.count {
            // A fraction, not a member or a range.
            if bytes[end] == ".", end + 1 < bytes.count, ("0"..."9").contains(bytes[end + 1]) {
                kind = .number
            } else if !Self.isWordByte(bytes[end]) {
                break
            }
            end += 1
        }
        let isDecimal = !(peek(1).map { "xob".utf8.contains($0) } ?? false)
        if isDecimal, bytes[position..<end].contains(where: { $0 == "e" }) { kind = .number }
        add(kind, to: end)
    }

    /// A raw string, a compiler directive, or a word like `#filePath`.
    private mutating func hash() {
        var hashes = 0
        while peek(hashes) == "#" { hashes += 1 }
        if peek(hashes) == "\"" { return string(hashes: hashes) }
        var end = position + hashes
        while end < bytes.count, Self.isWordByte(bytes[end]) { end += 1 }
        let name = String(decoding: bytes[position + hashes..<end], as: UTF8.self)
        guard ["if", "elseif", "else", "endif", "sourceLocation"].contains(name) else {
            return add(.word, to: end)
        }
        while end < bytes.count, bytes[end] != "\n" { end += 1 }
        add(.directive, to: end)
    }

    // MARK: Strings

    private mutating func string(hashes: Int) { add(.string, to: endOfString(at: position, hashes: hashes)) }

    private func starts(_ text: [UInt8], at index: Int) -> Bool { bytes[index...].starts(with: text) }

    /// Returns the end of the string that begins with its hashes at `start`.
    private func endOfString(at start: Int, hashes: Int) -> Int {
        let hash = [UInt8](repeating: "#", count: hashes)
        let isLong = starts(["\"", "\"", "\""], at: start + hashes)
        let quote = [UInt8](repeating: "\"", count: isLong ? 3 : 1)
        let escape = ["\\"] + hash
        var index = start + hashes + quote.count
        while index < bytes.count {
            if starts(quote + hash, at: index) { return index + quote.count + hashes }
            guard starts(escape, at: index) else {
                index += 1
                continue
            }
            index += escape.count
            let isInterpolation = index < bytes.count && bytes[index] == "("
            index = isInterpolation ? endOfInterpolation(at: index) : index + 1
        }
        return bytes.count
    }

    private func endOfInterpolation(at start: Int) -> Int {
        var depth = 0
        var index = start
        while index < bytes.count {
            switch bytes[index] {
            case "(": depth += 1
            case ")":
                depth -= 1
                if depth == 0 { return index + 1 }
            case "\"":
                index = endOfString(at: index, hashes: 0)
                continue
            default: break
            }
            index += 1
        }
        return bytes.count
    }

    // MARK: Operators

    private mutating func operators(with dot: UInt8?) {
        var end = position
        while end < bytes.count, Self.operatorBytes.contains(bytes[end]) || bytes[end] == dot { end += 1 }
        // `!` and `?` directly behind a value are tokens of their own, whatever follows.
        let before = position > 0 ? bytes[position - 1] : "\n"
        let isBoundBefore = !" \t\n([{,;:".utf8.contains(before)
        if isBoundBefore, bytes[position] == "!" || bytes[position] == "?",
            !(bytes[position] == "!" && peek(1) == "=")
        {
            return add(.postfix, to: position + 1)
        }
        let after = end < bytes.count ? bytes[end] : "\n"
        let isBoundAfter = !" \t\n)]},;:.".utf8.contains(after)
        let kind: SwiftToken.Kind =
            isBoundBefore == isBoundAfter ? .infix : isBoundAfter ? .prefix : .postfix
        add(kind, to: end, isSpaced: !isBoundBefore && !isBoundAfter)
    }
}

/// So a byte can be compared with a character.
extension UInt8: @retroactive ExpressibleByUnicodeScalarLiteral {
    /// The byte of an ASCII character.
    public init(unicodeScalarLiteral scalar: Unicode.Scalar) { self.init(ascii: scalar) }
}
