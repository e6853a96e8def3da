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

    /// The number of examples above the options. The others follow the text.
    private static let firstExamples = 2

    static func write(_ command: Outline, in root: Outline, _ sections: [Section], width: Int) -> String {
        var text = HelpText(width: max(width, leastWidth))
        text.addUsage(of: command)
        text.lines += [""] + Paragraphs.lines(of: command.summary + ".", width: text.width)
        text.add(command.examples.prefix(firstExamples), of: command, title: "Examples")
        text.add(
            command.groups.map { group in
                Table(
                    title: group ?? "Commands",
                    rows: command.visibleSubcommands.filter { $0.group == group }.map {
                        ($0.name, $0.summary)
                    })
            } + [
                Table(
                    title: "Operands",
                    rows: command.operands.map { ($0.name, summary($0.summary, $0.remarks)) })
            ] + optionTables(of: ownOptions(of: command)))
        text.addSharedOptions(of: command, in: root)
        if !command.text.isEmpty {
            text.lines += [""] + Paragraphs.lines(of: command.text, width: text.width)
        }
        text.add(command.examples.dropFirst(firstExamples), of: command, title: "More examples")
        let isRoot = command.path == root.path
        text.add(isRoot ? sections.filter { !$0.isDetail || root.sharedOptions.isEmpty } : [])
        if !command.subcommands.isEmpty {
            text.addLine(command.footer ?? "Run `\(command.title) help COMMAND` for the help of one command.")
        }
        return text.lines.joined(separator: "\n") + "\n"
    }

    /// The help of the options that many commands have, and of everything else that holds for all commands.
    static func writeShared(of root: Outline, _ sections: [Section], width: Int) -> String {
        var text = HelpText(width: max(width, leastWidth))
        text.lines = Paragraphs.lines(
            of: "Options of many commands. The help of a command says which of them it has.",
            width: text.width)
        text.add(optionTables(of: root.sharedOptions))
        text.add(sections.filter(\.isDetail))
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

    /// The options that the help of a command shows: its own. A command that only has subcommands needs none of those
    /// that every command has.
    private static func ownOptions(of command: Outline) -> [OptionDeclaration] {
        let options = command.visibleOptions.filter { !$0.isShared }
        return command.footer != nil && options.allSatisfy(Synopsis.isCommon) ? [] : options
    }

    private static func optionTables(of options: [OptionDeclaration]) -> [Table] {
        var titles: [String] = []
        for title in options.compactMap(\.section) where !titles.contains(title) { titles.append(title) }
        return titles.map { title in
            Table(title: title, rows: options.filter { $0.section == title }.map(row))
        }
            + [Table(title: "Options", rows: options.filter { $0.section == nil }.map(row))]
    }

    /// Names the options that many commands have.
    private mutating func addSharedOptions(of command: Outline, in root: Outline) {
        let names = command.visibleOptions.filter(\.isShared).map { "--\($0.name)" }
        guard !names.isEmpty else { return }
        addLine(
            "Options of many commands (see `\(root.title) help options`): \(names.joined(separator: ", ")).")
    }

    private mutating func addLine(_ text: String) {
        lines += [""] + Paragraphs.wrap(text.split(separator: " ").map(String.init), width: width)
    }

    private static func row(_ option: OptionDeclaration) -> (String, String) {
        let start = option.short.map { "-\($0), " } ?? "    "
        return (start + Synopsis.long(option), summary(option.summary, option.remarks))
    }

    /// Adds tables whose summaries begin at the same column.
    private mutating func add(_ tables: [Table]) {
        let terms = tables.flatMap(\.rows).map(\.term.count).filter { $0 <= Self.widestTerm }
        column = min((terms.max() ?? 0) + 4, width / 2)
        for table in tables where !table.rows.isEmpty { add(table) }
    }

    private mutating func add(_ sections: [Section]) {
        for section in sections { lines += ["", "\(section.title):"] + indented(section.text) }
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

    private mutating func add(_ examples: ArraySlice<Example>, of command: Outline, title: String) {
        guard !examples.isEmpty else { return }
        lines += ["", "\(title):"]
        for example in examples {
            lines += indented("\(example.summary):")
            lines.append("    \(example.written(for: command))")
        }
    }

    private func indented(_ text: String) -> [String] {
        Paragraphs.lines(of: text, width: width - 2).map { $0.isEmpty ? "" : "  \($0)" }
    }

    private static func spaces(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }
}
