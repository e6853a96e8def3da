/// The manual page of a program, in the `man` macros that every `man` reads.
struct ManualPage {
    let root: Outline
    let sections: [Section]
    /// The section of the manual.
    let section: Int
    let date: String
    let source: String

    /// Returns the page of the program: with everything about its commands, or with their names only if they have pages
    /// of their own.
    func write(hasPages: Bool) -> String {
        var lines = beginning(root)
        for command in root.visible where command.isComplete && !hasPages { lines += synopsis(command) }
        if hasPages { lines += Self.anyCommand(of: root) }
        lines += description(root)
        lines += parameters(root.visibleOptions, root, heading: "OPTIONS", withCommon: true)
        let commands = root.visible.dropFirst()
        if !commands.isEmpty { lines.append(".SH COMMANDS") }
        if hasPages {
            for group in root.groups {
                if let group { lines.append(".SS \(Self.word(group))") }
                for command in root.visibleSubcommands where command.group == group {
                    lines += [".TP", ".BR \(Self.word(pageName(command))) (\(section))"]
                    lines.append(Self.line(command.summary + "."))
                }
            }
            lines += parameters(
                root.sharedOptions, root, heading: "OPTIONS OF MANY COMMANDS", withCommon: false)
        } else {
            for command in commands { lines += part(command) }
        }
        for section in sections {
            lines += [".SH \(Self.word(section.title.uppercased()))"]
            lines += Self.paragraphs(section.text, startsWith: nil)
        }
        lines += examples(of: hasPages ? [root] : root.visible)
        return lines.joined(separator: "\n") + "\n"
    }

    /// Returns the page of one command and those below it.
    func write(_ command: Outline) -> String {
        var lines = beginning(command)
        for command in command.visible where command.isComplete { lines += synopsis(command) }
        lines += description(command)
        let own = command.visibleOptions.filter { !$0.isShared }
        lines += parameters(own, command, heading: "OPTIONS", withCommon: false)
        let shared = command.visibleOptions.filter(\.isShared)
        lines += parameters(shared, nil, heading: "OPTIONS OF MANY COMMANDS", withCommon: false)
        let below = command.visible.dropFirst()
        if !below.isEmpty { lines.append(".SH COMMANDS") }
        for command in below { lines += part(command) }
        lines += examples(of: command.visible)
        lines += [".SH SEE ALSO", ".BR \(Self.word(root.name)) (\(section))"]
        return lines.joined(separator: "\n") + "\n"
    }

    /// The name of a command's own page, such as `nigh-send`.
    private func pageName(_ command: Outline) -> String { command.path.joined(separator: "-") }

    private func beginning(_ command: Outline) -> [String] {
        let name = pageName(command)
        return [
            ".TH \(Self.word(name.uppercased())) \(section) \(date) \(Self.word(source))", ".SH NAME",
            "\(Self.text(name)) \\- \(Self.text(command.summary))", ".SH SYNOPSIS",
        ]
    }

    private func description(_ command: Outline) -> [String] {
        [".SH DESCRIPTION", Self.line(command.summary + ".")]
            + Self.paragraphs(command.text, startsWith: ".PP")
    }

    /// A command as a part of another one's page.
    private func part(_ command: Outline) -> [String] {
        [".SS \(Self.word(command.title))", Self.line(command.summary + ".")]
            + Self.paragraphs(command.text, startsWith: ".PP")
            + parameters(command.visibleOptions, command, heading: nil, withCommon: false)
    }

    private static func anyCommand(of root: Outline) -> [String] {
        [".SY \(word(root.title))", ".I COMMAND" + noEnd, ".RI [ argument ]..." + noEnd, ".YS"]
    }

    private func synopsis(_ command: Outline) -> [String] {
        let words = (Synopsis.ways(command).first ?? []).map { Self.text($0).replacingSpaces }
        return [".SY \(Self.word(command.title))"] + words.map { Self.guarded($0) + Self.noEnd } + [".YS"]
    }

    /// - Parameter command: the command whose operands come first; nil for none.
    private func parameters(
        _ options: [OptionDeclaration], _ command: Outline?, heading: String?, withCommon: Bool
    ) -> [String] {
        var lines: [String] = []
        for operand in command?.operands ?? [] {
            lines += [".TP", ".I \(Self.word(operand.name))"]
            lines.append(Self.line(HelpText.summary(operand.summary, operand.remarks)))
        }
        for option in options where withCommon || !Synopsis.isCommon(option) {
            let short = option.short.map { "-\($0), " } ?? ""
            lines += [".TP", ".B \(Self.word(short + Synopsis.long(option)))"]
            lines.append(Self.line(HelpText.summary(option.summary, option.remarks)))
        }
        guard let heading, !lines.isEmpty else { return lines }
        return [".SH \(heading)"] + lines
    }

    private func examples(of commands: [Outline]) -> [String] {
        let commands = commands.filter { !$0.examples.isEmpty }
        guard !commands.isEmpty else { return [] }
        return [".SH EXAMPLES"]
            + commands.flatMap { command in
                command.examples.flatMap { example in
                    [".TP", Self.line(example.written(for: command)), Self.line(example.summary)]
                }
            }
    }

    private static func paragraphs(_ text: String, startsWith first: String?) -> [String] {
        Paragraphs.pieces(of: text).enumerated().flatMap { index, piece in
            let start = (index == 0 ? first : ".PP").map { [$0] } ?? []
            return switch piece {
            case .flowing(let words): start + [line(words)]
            case .fixed(let lines): start + [".nf"] + lines.map(line) + [".fi"]
            }
        }
    }

    /// Returns a line of text that cannot be read as a macro.
    private static func line(_ words: String) -> String { guarded(text(words)) }

    /// Keeps three dots at the end of a word from ending a sentence.
    private static let noEnd = "\\&"

    private static func guarded(_ line: String) -> String {
        line.hasPrefix(".") || line.hasPrefix("'") ? "\\&\(line)" : line
    }

    /// Returns `words` as one argument of a macro.
    private static func word(_ words: String) -> String {
        "\"" + text(words).map { $0 == "\"" ? "\\(dq" : String($0) }.joined() + "\""
    }

    /// Returns `words` in ASCII, with everything escaped that the formatter would interpret.
    private static func text(_ words: String) -> String {
        words.unicodeScalars.map { scalar in
            switch scalar {
            case "\\": "\\e"
            case "-": "\\-"
            case "'": "\\(aq"
            case "`": "\\(ga"
            case "^": "\\(ha"
            case "~": "\\(ti"
            case "\n", "\r", "\t": " "
            case _ where scalar.isASCII: String(scalar)
            default: "\\[u\(hexadecimal(scalar.value))]"
            }
        }.joined()
    }

    private static func hexadecimal(_ value: UInt32) -> String {
        let digits = String(value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}

extension String {
    /// The string with spaces at which no line is broken.
    fileprivate var replacingSpaces: String { map { $0 == " " ? "\\ " : String($0) }.joined() }
}
