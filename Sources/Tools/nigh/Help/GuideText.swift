import Arguments

/// Turns the Markdown of a guide into lines for a terminal. It knows the elements that the guides use: headings,
/// paragraphs, lists, tables, code, links and pictures.
struct GuideText {
    private static let codeIndent = "    "

    private let width: Int
    private var lines: [Line] = []
    /// The lines of the paragraph. A link may begin in one and end in the next.
    private var paragraph: [Substring] = []
    /// The text before the first line of the paragraph, such as the dash of a list.
    private var bullet = ""
    private var columns: [Substring] = []

    /// Returns the text in lines of at most `width` columns. Only code and long words exceed them.
    static func lines(of markdown: String, width: Int) -> [Line] {
        var text = GuideText(width: width)
        var isCode = false
        for line in markdown.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                text.endParagraph()
                isCode.toggle()
            } else if isCode {
                text.lines.append(Line(codeIndent + line))
            } else {
                text.add(line)
            }
        }
        text.endParagraph()
        while text.lines.last == Line("") { text.lines.removeLast() }
        return text.lines
    }

    /// Returns the Markdown of the section whose heading begins with `start`; nil if there is none.
    static func section(_ start: String, of markdown: String) -> String? {
        let lines = markdown.split(separator: "\n", omittingEmptySubsequences: false)
        guard let first = lines.firstIndex(where: { level($0) > 0 && plain($0).hasPrefix(start) }) else {
            return nil
        }
        let depth = level(lines[first])
        let end =
            lines[(first + 1)...].firstIndex { level($0) > 0 && level($0) <= depth } ?? lines.endIndex
        return lines[first..<end].joined(separator: "\n")
    }

    private init(width: Int) { self.width = width }

    /// The level of a heading; 0 for any other line.
    private static func level(_ line: Substring) -> Int {
        let marks = line.prefix { $0 == "#" }
        return line.dropFirst(marks.count).first == " " ? marks.count : 0
    }

    private mutating func add(_ line: Substring) {
        let item = line.prefixMatch(of: #/ *(?:-|\d+\.) /#)
        if line.allSatisfy(\.isWhitespace) {
            endParagraph()
            columns = []
            if lines.last != Line("") { lines.append(Line("")) }
        } else if Self.level(line) > 0 {
            endParagraph()
            lines.append(Line(Self.plain(line.drop { $0 == "#" }.dropFirst()), .strong))
        } else if line.hasPrefix("|") {
            addRow(line)
        } else if let item {
            endParagraph()
            bullet = String(item.0)
            paragraph = [line.dropFirst(bullet.count)]
        } else {
            paragraph.append(line)
        }
    }

    private mutating func endParagraph() {
        let words = Self.words(paragraph.joined(separator: " ")[...])
        guard !words.isEmpty else { return }
        let indent = String(repeating: " ", count: bullet.count)
        let wrapped = Paragraphs.wrap(words, width: width - bullet.count)
        lines += wrapped.enumerated().map { Line(($0 == 0 ? bullet : indent) + $1) }
        (paragraph, bullet) = ([], "")
    }

    /// Writes a row of a table: its first cell, and below it the others, each after the heading of its column.
    private mutating func addRow(_ line: Substring) {
        endParagraph()
        let cells = line.replacing("\\|", with: "\u{0}").split(
            separator: "|", omittingEmptySubsequences: false
        )
        .dropFirst().dropLast()
        .map { Self.plain($0).replacing("\u{0}", with: "|").trimming(where: \.isWhitespace) }
        if columns.isEmpty {
            columns = cells
            return
        }
        guard !cells.allSatisfy({ $0.allSatisfy { "-:".contains($0) } && !$0.isEmpty }), !cells.isEmpty else {
            return
        }
        lines += Paragraphs.wrap(Self.words(cells[0]), width: width - 2).map { Line("  " + $0, .strong) }
        for (heading, cell) in zip(columns, cells).dropFirst() where !cell.isEmpty {
            let label = columns.count > 2 && !heading.isEmpty ? ["\(heading):"] : []
            lines += Paragraphs.wrap(label + Self.words(cell), width: width - 6).map {
                Line("      " + $0)
            }
        }
    }

    private static func words(_ line: Substring) -> [String] {
        plain(line).split(separator: " ").map(String.init)
    }

    /// Returns a line without the marks of links, pictures and emphasis.
    private static func plain(_ line: Substring) -> String {
        String(line)
            .replacing(#/!\[([^\]]*)\]\([^)]*\)/#) { "[picture: \($0.1)]" }
            .replacing(#/\[([^\]]+)\]\([^)]*\)/#) { "\($0.1)" }
            .replacing("**", with: "")
            .replacing(#/(^|[ (])\*([^* ][^*]*)\*/#) { "\($0.1)\($0.2)" }
            .replacing(#/^#+ /#, with: "")
    }
}
