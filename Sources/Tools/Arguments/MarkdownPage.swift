/// The reference of a program's commands as Markdown, from which its pages on the documentation site are made.
///
/// Each command has a section of its own, with a heading of the first level.
struct MarkdownPage {
    static func write(_ root: Outline, _ sections: [Section]) -> String {
        var lines: [String] = []
        for command in root.visible {
            lines += Self.command(command)
            if command.path == root.path {
                if let footer = command.footer { lines += paragraphs(footer) }
                for section in sections { lines += ["## \(section.title)", ""] + paragraphs(section.text) }
            }
        }
        return lines.joined(separator: "\n")
    }

    private static func command(_ command: Outline) -> [String] {
        var lines = ["# \(command.title)", "", text(command.summary) + ".", ""]
        let ways = Synopsis.shortWays(command).map { ([command.title] + $0).joined(separator: " ") }
        lines += fence(ways) + paragraphs(command.text)
        if command.subcommands.isEmpty == false {
            lines += table(
                "Commands", command.visibleSubcommands.map { ("`\($0.title)`", text($0.summary)) })
        }
        lines += table("Operands", command.operands.map { ("`\($0.name)`", meaning($0.summary, $0.remarks)) })
        var titles: [String?] = [nil]
        for option in command.visibleOptions where !titles.contains(option.section) {
            titles.append(option.section)
        }
        for title in titles.dropFirst() + titles.prefix(1) {
            let options = command.visibleOptions.filter { $0.section == title }
            lines += table(
                title ?? "Options",
                options.map { option in
                    let short = option.short.map { "`-\($0)`, " } ?? ""
                    return (
                        "\(short)`\(Synopsis.long(option))`", meaning(option.summary, option.remarks)
                    )
                })
        }
        guard !command.examples.isEmpty else { return lines }
        lines += ["## Examples", ""]
        for example in command.examples {
            lines += [text(example.summary) + ":", ""] + fence([example.written(for: command)])
        }
        return lines
    }

    private static func table(_ title: String, _ rows: [(term: String, meaning: String)]) -> [String] {
        guard !rows.isEmpty else { return [] }
        return ["## \(title)", "", "| \(title.lowercased()) | meaning |", "| --- | --- |"]
            + rows.map { "| \(cell($0.term)) | \(cell($0.meaning)) |" } + [""]
    }

    private static func meaning(_ summary: String, _ remarks: [String]) -> String {
        text(HelpText.summary(summary, remarks))
    }

    private static func paragraphs(_ text: String) -> [String] {
        Paragraphs.pieces(of: text).flatMap { piece in
            switch piece {
            case .flowing(let words): [Self.text(words), ""]
            case .fixed(let lines): fence(lines)
            }
        }
    }

    private static func fence(_ lines: [String]) -> [String] { ["```"] + lines + ["```", ""] }

    private static func cell(_ words: String) -> String { words.replacing("|", with: "\\|") }

    /// Returns `words` with everything escaped that Markdown would interpret, except in backquotes.
    private static func text(_ words: String) -> String {
        let parts = words.split(separator: "`", omittingEmptySubsequences: false)
        return parts.enumerated().map { index, part in
            let isCode = index % 2 == 1 && index < parts.count - 1
            return isCode ? String(part) : escaped(part)
        }.joined(separator: "`")
    }

    private static func escaped(_ words: Substring) -> String {
        words.map { "\\<>*[]#&_".contains($0) ? "\\\($0)" : String($0) }.joined()
    }
}
