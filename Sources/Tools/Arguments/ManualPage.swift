/// The manual page of a program, in the `man` macros that every `man` reads.
struct ManualPage {
    private let root: Outline
    private let sections: [Section]

    init(_ root: Outline, _ sections: [Section]) {
        self.root = root
        self.sections = sections
    }

    func write(section: Int, date: String, source: String) -> String {
        var lines = [".TH \(Self.word(root.name.uppercased())) \(section) \(date) \(Self.word(source))"]
        lines += [".SH NAME", "\(Self.text(root.name)) \\- \(Self.text(root.summary))"]
        lines += [".SH SYNOPSIS"]
        for command in root.visible where command.isComplete { lines += synopsis(command) }
        lines +=
            [".SH DESCRIPTION", Self.line(root.summary + ".")] + Self.paragraphs(root.text, startsWith: ".PP")
        lines += parameters(root, heading: ".SH")
        let commands = root.visible.dropFirst()
        if !commands.isEmpty { lines.append(".SH COMMANDS") }
        for command in commands {
            lines += [".SS \(Self.word(command.title))", Self.line(command.summary + ".")]
            lines += Self.paragraphs(command.text, startsWith: ".PP")
            lines += parameters(command, heading: nil)
        }
        for section in sections {
            lines += [".SH \(Self.word(section.title.uppercased()))"]
            lines += Self.paragraphs(section.text, startsWith: nil)
        }
        lines += examples
        return lines.joined(separator: "\n") + "\n"
    }

    private func synopsis(_ command: Outline) -> [String] {
        let words = (Synopsis.ways(command).first ?? []).map { Self.text($0).replacingSpaces }
        return [".SY \(Self.word(command.title))"] + words.map { Self.guarded($0) + Self.noEnd } + [".YS"]
    }

    private func parameters(_ command: Outline, heading: String?) -> [String] {
        var lines: [String] = []
        if let heading { lines.append("\(heading) OPTIONS") }
        for operand in command.operands {
            lines += [".TP", ".I \(Self.word(operand.name))"]
            lines.append(Self.line(HelpText.summary(operand.summary, operand.remarks)))
        }
        for option in command.visibleOptions where heading != nil || !Synopsis.isCommon(option) {
            let short = option.short.map { "-\($0), " } ?? ""
            lines += [".TP", ".B \(Self.word(short + Synopsis.long(option)))"]
            lines.append(Self.line(HelpText.summary(option.summary, option.remarks)))
        }
        return lines
    }

    private var examples: [String] {
        let commands = root.visible.filter { !$0.examples.isEmpty }
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
