/// Marks the tokens of a file that no mutant changes: attributes, compiler directives and patterns.
struct LeftAlone {
    private(set) var marks: [Bool]
    private let tokens: [SwiftToken]

    init(_ tokens: [SwiftToken]) {
        self.tokens = tokens
        marks = tokens.map { $0.kind == .directive }
        for index in tokens.indices {
            if tokens[index].isMark("@") { markAttribute(at: index) }
            if tokens[index].isWord("case") { markPattern(after: index) }
            if tokens[index].isWord("import") { markLine(of: index) }
        }
    }

    private mutating func markAttribute(at start: Int) {
        var index = start
        marks[index] = true
        while index + 1 < tokens.count, tokens[index + 1].kind == .word || tokens[index + 1].isMark(".") {
            // A name directly behind the `@`, and its dots. The next word does not belong to it.
            guard tokens[index + 1].bytes.lowerBound == tokens[index].bytes.upperBound else { return }
            index += 1
            marks[index] = true
        }
        guard index + 1 < tokens.count, tokens[index + 1].isMark("("),
            tokens[index + 1].bytes.lowerBound == tokens[index].bytes.upperBound
        else { return }
        var depth = 0
        repeat {
            index += 1
            marks[index] = true
            depth += tokens[index].nesting
        } while depth > 0 && index + 1 < tokens.count
    }

    /// Marks up to the colon of a switch case, the equals sign of a condition, or the end of a
    /// declaration. A `where` ends the pattern too.
    private mutating func markPattern(after start: Int) {
        var depth = 0
        var index = start
        while index + 1 < tokens.count {
            index += 1
            let token = tokens[index]
            if depth == 0 {
                if token.isMark(":") || token.isWord("where") || token.isMark("{") { return }
                if token.kind == .infix, token.text == "=" { return markValue(after: index, of: start) }
                let goesOn = tokens[index - 1].isMark(",") || index == start + 1
                if token.isFirstOnLine, !goesOn { return }
            }
            depth += token.nesting
            if depth < 0 { return }
            marks[index] = true
        }
    }

    /// Marks the value of an enumeration's case, which is part of its declaration. The value of a condition is an
    /// expression.
    private mutating func markValue(after equals: Int, of start: Int) {
        guard tokens[start].isFirstOnLine, start > 0, !tokens[start - 1].isMark(",") else { return }
        var index = equals
        while index + 1 < tokens.count, !tokens[index + 1].isFirstOnLine {
            index += 1
            marks[index] = true
        }
    }

    private mutating func markLine(of start: Int) {
        for index in start..<tokens.count where tokens[index].line == tokens[start].line {
            marks[index] = true
        }
    }
}
