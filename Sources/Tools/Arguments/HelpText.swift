/// The text that `--help` shows for a command.
struct HelpText {
    /// The least width; narrower text is unreadable.
    private static let leastWidth = 40
    /// The most lines that the full list of options may take in the usage.
    private static let longestUsage = 4
    /// The greatest width of a term beside its summary; a longer term gets a line of its own.
    private static let widestTerm = 28

    private let width: Int
    /// The column at which summaries begin.
    private var column = 0
    private var lines: [String] = []

    /// A heading and the rows under it.
    private struct Table {
        let title: String
        let rows: [(term: String, summary: String)]
    }

    static func write(_ command: Outline, in root: Outline, _ sections: [Section], width: Int) -> String {
        var text = HelpText(width: max(width, leastWidth))
        text.addUsage(of: command)
        text.addText(of: command)
        let tables =
            [
                Table(title: "Commands", rows: command.visibleSubcommands.map { ($0.name, $0.summary) }),
                Table(
                    title: "Operands",
                    rows: command.operands.map { ($0.name, summary($0.summary, $0.remarks)) }),
            ] + optionTables(of: command)
        let terms = tables.flatMap(\.rows).map(\.term.count).filter { $0 <= widestTerm }
        text.column = min((terms.max() ?? 0) + 4, text.width / 2)
        for table in tables where !table.rows.isEmpty { text.add(table) }
        text.addExamples(of: command)
        let isRoot = command.path == root.path
        for section in isRoot ? sections : [] {
            text.lines += ["", "\(section.title):"] + text.indented(section.text)
        }
        if !command.subcommands.isEmpty {
            text.lines +=
                [""]
                + Paragraphs.wrap(
                    "Run `\(command.title) help COMMAND` for the help of one command."
                        .split(separator: " ").map(String.init),
                    width: text.width)
        }
        return text.lines.joined(separator: "\n") + "\n"
    }

    static func summary(_ summary: String, _ remarks: [String]) -> String {
        remarks.isEmpty ? summary : "\(summary) (\(remarks.joined(separator: "; ")))"
    }

    private init(width: Int) { self.width = width }

    private mutating func addUsage(of command: Outline) {
        let full = usage(command, Synopsis.ways(command))
        lines += full.count <= Self.longestUsage ? full : usage(command, Synopsis.shortWays(command))
    }

    private func usage(_ command: Outline, _ ways: [[String]]) -> [String] {
        var result: [String] = []
        for way in ways {
            let start = (result.isEmpty ? "usage: " : "       ") + command.title
            // After a long name there may be too little room, even for one word.
            let room = width - start.count - 1
            let isTight = room < width / 2 || way.contains { $0.count > room }
            let indent = isTight ? 8 : start.count + 1
            let wrapped = Paragraphs.wrap(way, width: width - indent).map { Self.spaces(indent) + $0 }
            if isTight || wrapped.isEmpty {
                result += [start] + wrapped
            } else {
                result += [start + wrapped[0].dropFirst(start.count)] + wrapped.dropFirst()
            }
        }
        return result
    }

    private mutating func addText(of command: Outline) {
        lines += [""] + Paragraphs.lines(of: command.summary + ".", width: width)
        if !command.text.isEmpty { lines += [""] + Paragraphs.lines(of: command.text, width: width) }
    }

    private static func optionTables(of command: Outline) -> [Table] {
        let options = command.visibleOptions
        var titles: [String] = []
        for title in options.compactMap(\.section) where !titles.contains(title) { titles.append(title) }
        return titles.map { title in
            Table(title: title, rows: options.filter { $0.section == title }.map(row))
        }
            + [Table(title: "Options", rows: options.filter { $0.section == nil }.map(row))]
    }

    private static func row(_ option: OptionDeclaration) -> (String, String) {
        let start = option.short.map { "-\($0), " } ?? "    "
        return (start + Synopsis.long(option), summary(option.summary, option.remarks))
    }

    private mutating func add(_ table: Table) {
        lines += ["", "\(table.title):"]
        for (term, summary) in table.rows {
            var wrapped = Paragraphs.wrap(
                summary.split(separator: " ").map(String.init), width: width - column)[...]
            var line = "  \(term)"
            if line.count + 2 <= column, let first = wrapped.popFirst() {
                line += Self.spaces(column - line.count) + first
            }
            lines.append(line)
            lines += wrapped.map { Self.spaces(column) + $0 }
        }
    }

    private mutating func addExamples(of command: Outline) {
        guard !command.examples.isEmpty else { return }
        lines += ["", "Examples:"]
        for example in command.examples {
            lines += indented("\(example.summary):")
            lines.append("    \(example.written(for: command))")
        }
    }

    private func indented(_ text: String) -> [String] {
        Paragraphs.lines(of: text, width: width - 2).map { $0.isEmpty ? "" : "  \($0)" }
    }

    private static func spaces(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }
}
