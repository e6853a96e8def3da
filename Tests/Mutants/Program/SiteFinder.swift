/// Finds the places in a file where a small change can be tried.
///
/// It skips comments, strings, attributes, patterns, comparisons with `nil`, declarations of operators, members of
/// tuples, and everything in angle brackets.
struct SiteFinder {
    private let file: String
    private let lines: [String]
    private let tokens: [SwiftToken]
    /// Whether each token belongs to a pattern or an attribute.
    private let isLeftAlone: [Bool]
    private var sites: [Site] = []

    private init(file: String, source: [UInt8]) {
        self.file = file
        lines = source.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        tokens = SwiftLexer.tokens(of: source)
        isLeftAlone = LeftAlone(tokens).marks
    }

    /// Returns all places in `source`, in order.
    static func sites(in source: [UInt8], file: String) -> [Site] {
        var finder = SiteFinder(file: file, source: source)
        for index in finder.tokens.indices where !finder.isLeftAlone[index] { finder.look(at: index) }
        return finder.numbered()
    }

    private mutating func look(at index: Int) {
        let token = tokens[index]
        switch token.kind {
        case .infix: infix(token, index)
        case .prefix where token.text == "!":
            add(token, .not, "`!` is left out") { [Site.Edit(bytes: token.bytes, text: Schema.name($0))] }
        case .integer: integer(token, index)
        case .word:
            switch token.text {
            case "true", "false":
                let other = token.text == "true" ? "false" : "true"
                enclose(token, token.bytes, .truth, "`\(token.text)` becomes `\(other)`", Schema.truth)
            case "min", "max": extreme(token, index)
            case "if", "guard", "while": condition(token, index)
            default: statement(token, index)
            }
        default: break
        }
    }

    // MARK: Tokens

    private mutating func infix(_ token: SwiftToken, _ index: Int) {
        guard token.isSpaced, let other = Schema.replacements[token.text],
            !touches("nil", index), index > 0, !tokens[index - 1].isWord("func")
        else { return }
        add(token, .infix(token.text, other), "`\(token.text)` becomes `\(other)`") {
            [Site.Edit(bytes: token.bytes, text: Schema.name($0))]
        }
    }

    private func touches(_ word: String, _ index: Int) -> Bool {
        (index > 0 && tokens[index - 1].isWord(word))
            || (index + 1 < tokens.count && tokens[index + 1].isWord(word))
    }

    private mutating func integer(_ token: SwiftToken, _ index: Int) {
        let digits = token.text.filter { $0 != "_" }
        guard let value = Self.value(of: digits), index > 0, !tokens[index - 1].isMark("."),
            !(tokens[index - 1].text == "<" && !tokens[index - 1].isSpaced)
        else { return }
        let step = value > 1 && value % 2 == 0 ? -1 : 1
        enclose(
            token, token.bytes, .integer(by: step),
            "`\(token.text)` becomes \(value &+ UInt64(bitPattern: Int64(step)))",
            step > 0 ? Schema.more : Schema.less)
    }

    private static func value(of digits: String) -> UInt64? {
        guard digits.hasPrefix("0x") else { return UInt64(digits) }
        return UInt64(digits.dropFirst(2), radix: 16)
    }

    private mutating func extreme(_ token: SwiftToken, _ index: Int) {
        guard index + 1 < tokens.count, tokens[index + 1].isMark("("),
            tokens[index + 1].bytes.lowerBound == token.bytes.upperBound,
            index == 0 || !(tokens[index - 1].isMark(".") || tokens[index - 1].isWord("func"))
        else { return }
        let other = token.text == "min" ? "max" : "min"
        let bytes = token.bytes.lowerBound..<tokens[index + 1].bytes.upperBound
        let name = Schema.extreme(token.text)
        add(token, .extreme(token.text), "`\(token.text)` becomes `\(other)`") {
            [Site.Edit(bytes: bytes, text: "\(name)(\($0), ")]
        }
    }

    // MARK: Conditions

    /// Adds each clause of a condition that is a Boolean value and binds nothing.
    private mutating func condition(_ token: SwiftToken, _ index: Int) {
        // The end of `repeat {} while`.
        if token.text == "while", index > 0, tokens[index - 1].isMark("}"), !token.isFirstOnLine { return }
        var depth = 0
        var start = index + 1
        for next in index + 1..<tokens.count {
            let mark = tokens[next]
            let isEnd = depth == 0 && (mark.isMark("{") || mark.isWord("else"))
            if isEnd || (depth == 0 && mark.isMark(",")) {
                clause(token, start..<next)
                start = next + 1
            }
            if isEnd { return }
            depth += mark.nesting
            if depth < 0 { return }
        }
    }

    private mutating func clause(_ token: SwiftToken, _ range: Range<Int>) {
        guard let first = range.first.map({ tokens[$0] }), let last = range.last.map({ tokens[$0] }),
            !["let", "var", "case", "#available", "#unavailable", "true", "false"].contains(first.text)
        else { return }
        let bytes = first.bytes.lowerBound..<last.bytes.upperBound
        let words = text(range)
        enclose(first, bytes, .truth, "`\(words)` is negated", Schema.truth)
    }

    private func text(_ range: Range<Int>) -> String {
        var text = ""
        for index in range {
            if index > range.lowerBound, tokens[index - 1].bytes.upperBound < tokens[index].bytes.lowerBound {
                text += " "
            }
            text += tokens[index].text
        }
        return text
    }

    // MARK: Statements

    private static let startsNoStatement = Set(
        """
        if guard while for switch case default return break continue throw defer do repeat else catch \
        let var func init deinit subscript struct class enum extension protocol import typealias static \
        private fileprivate internal package public open final mutating nonmutating consuming borrowing \
        override indirect lazy weak unowned nonisolated convenience required get set didSet willSet \
        fallthrough where async throws some any nil operator actor prefix postfix infix associatedtype \
        precedencegroup is as in inout
        """.split(separator: " ").map(String.init))

    /// Adds a call or an assignment that begins its line and stands in a body.
    private mutating func statement(_ token: SwiftToken, _ index: Int) {
        guard token.isFirstOnLine, !Self.startsNoStatement.contains(token.text), index > 0,
            !isContinued(after: index - 1), innermostBracket(before: index) == "{"
        else { return }
        var depth = 0
        var end = index
        for next in index..<tokens.count {
            let mark = tokens[next]
            if next > index, depth == 0,
                mark.isMark("}") || (mark.isFirstOnLine && !continues(mark, after: next - 1))
            {
                break
            }
            depth += mark.nesting
            end = next
        }
        guard end > index else { return }
        let start = token.bytes.lowerBound
        let stop = tokens[end].bytes.upperBound
        add(token, .statement, "the statement is left out") {
            [
                Site.Edit(bytes: start..<start, text: "if \(Schema.off)(\($0)) { ", reach: stop - start),
                Site.Edit(bytes: stop..<stop, text: " }", reach: stop - start),
            ]
        }
    }

    /// Whether an expression that ends with this token continues on the next line.
    private func isContinued(after index: Int) -> Bool {
        let token = tokens[index]
        switch token.kind {
        case .infix, .prefix: return true
        case .mark: return ["(", "[", ",", ".", "@"].contains(token.text)
        case .word:
            return ["return", "throw", "else", "where", "case", "let", "var", "try"].contains(token.text)
        default: return false
        }
    }

    private func continues(_ token: SwiftToken, after index: Int) -> Bool {
        isContinued(after: index) || token.isMark(".") || token.isMark(":") || token.isMark("{")
            || token.isWord("else") || token.kind == .infix || token.kind == .postfix
    }

    private func innermostBracket(before index: Int) -> String? {
        var closed = 0
        for previous in stride(from: index - 1, through: 0, by: -1) {
            let token = tokens[previous]
            if token.nesting > 0, closed == 0 { return token.text }
            closed -= token.nesting
        }
        return nil
    }

    // MARK: Sites

    private mutating func enclose(
        _ token: SwiftToken, _ bytes: Range<Int>, _ kind: Site.Kind, _ change: String, _ function: String
    ) {
        add(token, kind, change) {
            [
                Site.Edit(
                    bytes: bytes.lowerBound..<bytes.lowerBound, text: "\(function)(\($0), ",
                    reach: bytes.count),
                Site.Edit(bytes: bytes.upperBound..<bytes.upperBound, text: ")", reach: bytes.count),
            ]
        }
    }

    private mutating func add(
        _ token: SwiftToken, _ kind: Site.Kind, _ change: String,
        _ edits: @escaping @Sendable (Int) -> [Site.Edit]
    ) {
        let source = lines[token.line - 1].split(separator: " ").joined(separator: " ")
        sites.append(
            Site(file: file, line: token.line, source: source, kind: kind, change: change, edits: edits))
    }

    /// Makes equal keys different by counting them.
    private func numbered() -> [Site] {
        var seen: [String: Int] = [:]
        return sites.map { site in
            seen[site.key, default: 0] += 1
            guard let count = seen[site.key], count > 1 else { return site }
            return Site(
                file: site.file, line: site.line, source: site.source, kind: site.kind,
                change: "\(site.change) (\(count))", edits: site.edits)
        }
    }
}
