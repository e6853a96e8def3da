/// The completion script for fish: a line for each command, option and operand, and a function that says which of them
/// apply.
struct FishCompletion {
    private let root: Outline
    private let function: String

    init(_ root: Outline) {
        self.root = root
        function = "_\(ShellText.functionName(root.path))_at"
    }

    var script: String {
        """
        # Completes \(root.name) in fish. Save it as ~/.config/fish/completions/\(root.name).fish

        # Returns whether the command line is at this command and, if they are given, has $least to $most operands.
        function \(function) --argument-names command least most
            set -l words (commandline --tokenize --cut-at-cursor --current-process)
            set -l at \(Self.quoted(root.name))
            set -l operands 0
            set -l ended 0
            set -l wants 0
            for word in $words[2..-1]
                if test $wants = 1
                    set wants 0
                    continue
                end
                if test $ended = 1
                    set operands (math $operands + 1)
                    continue
                end
                if test $operands = 0
                    switch "$at $word"
                        case \(list(ShellText.ways(in: root)))
                            set at "$at $word"
                            continue
                    end
                end
                switch "$at $word"
                    case \(list(valueOptions))
                        set wants 1
                    case '* --'
                        set ended 1
                    case '* -'
                        set operands (math $operands + 1)
                    case '* -*'
                    case '*'
                        set operands (math $operands + 1)
                end
            end
            test "$at" = "$command"; or return 1
            test -z "$least"; and return 0
            test $operands -ge $least; and test $operands -le $most
        end

        complete --command \(root.name) --no-files
        \(root.all.flatMap(lines).joined(separator: "\n"))

        """
    }

    private var valueOptions: [String] {
        root.all.flatMap { command in
            command.options.filter { $0.candidates != nil }.flatMap(ShellText.spellings)
                .map { "\(command.title) \($0)" }
        }
    }

    private func lines(of command: Outline) -> [String] {
        let ways = [command.title] + ShellText.helpWays(to: command, in: root)
        let commands = command.visibleSubcommands.flatMap { next in
            ways.map { line(when: $0, "0 0", candidates: .words([next.name]), next.summary) }
        }
        let help =
            commands.isEmpty
            ? []
            : [line(when: command.title, "0 0", candidates: .words(["help"]), "shows the help of a command")]
                + (command.helpTopics == .none
                    ? []
                    : ways.dropFirst().map {
                        line(when: $0, "0 0", candidates: command.helpTopics, "a guide")
                    })
        let operands = command.operands.enumerated().map { index, operand in
            let most = operand.isRepeated ? "9999" : "\(index)"
            return line(
                when: command.title, "\(index) \(most)", candidates: operand.candidates, operand.summary)
        }
        return commands + help + command.visibleOptions.flatMap { lines(of: $0, in: command) } + operands
    }

    private func lines(of option: OptionDeclaration, in command: Outline) -> [String] {
        option.longNames.map { name in
            var words = "complete --command \(root.name) --condition \(condition(command.title))"
            if name == option.name, let short = option.short { words += " --short-option \(short)" }
            words += " --long-option \(name)"
            if let candidates = option.candidates {
                words += " --require-parameter" + arguments(candidates, isAlone: true)
            }
            return words + description(ShellText.summary(option, as: "--\(name)"))
        }
    }

    private func line(when title: String, _ operands: String, candidates: Candidates, _ summary: String)
        -> String
    {
        "complete --command \(root.name) --condition \(condition(title, operands))"
            + arguments(candidates, isAlone: false) + description(summary)
    }

    private func arguments(_ candidates: Candidates, isAlone: Bool) -> String {
        switch candidates {
        case .none: isAlone ? " --no-files" : ""
        case .words(let words):
            " --no-files --arguments " + Self.quoted(words.map(Self.quoted).joined(separator: " "))
        case .files: " --force-files"
        case .directories: " --no-files --arguments '(__fish_complete_directories)'"
        case .lines(let source):
            " --no-files --arguments " + Self.quoted("(sh -c \(Self.quoted(source)) 2>/dev/null)")
        case .linesAndFiles(let source):
            " --force-files --arguments " + Self.quoted("(sh -c \(Self.quoted(source)) 2>/dev/null)")
        }
    }

    private func description(_ summary: String) -> String {
        " --description \(Self.quoted(Wording.onOneLine(summary)))"
    }

    private func condition(_ title: String, _ operands: String? = nil) -> String {
        Self.quoted([function, Self.quoted(title), operands].compactMap { $0 }.joined(separator: " "))
    }

    /// In single quotes, fish interprets a backslash only before a quotation mark or another backslash.
    private static func quoted(_ text: String) -> String { "'\(ShellText.escaped(text, ["\\", "'"]))'" }

    private func list(_ words: [String]) -> String {
        (words.isEmpty ? [""] : words).map(Self.quoted).joined(separator: " ")
    }
}
