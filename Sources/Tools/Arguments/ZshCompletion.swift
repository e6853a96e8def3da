/// The completion script for zsh: a function for each command, which calls zsh's own `_arguments`.
struct ZshCompletion {
    private let root: Outline

    init(_ root: Outline) { self.root = root }

    var script: String {
        let function = ShellText.functionName(root.path)
        return """
            #compdef \(root.name)
            # Completes \(root.name) in zsh. Save it as _\(root.name) in a directory of $fpath, or source it after compinit.

            \(root.all.flatMap(functions).joined(separator: "\n\n"))

            if [[ ${funcstack[1]} == \(function) ]]; then
                \(function) "$@"
            else
                compdef \(function) \(root.name)
            fi

            """
    }

    private func functions(of command: Outline) -> [String] {
        var functions = [main(command)]
        if !command.subcommands.isEmpty { functions.append(commands(command)) }
        functions += lines(of: command.helpTopics, as: name(command, "help-topics"))
        for option in command.options {
            functions += lines(of: option.candidates, as: name(command, option.name))
        }
        for operand in command.operands {
            functions += lines(of: operand.candidates, as: name(command, operand.name))
        }
        return functions
    }

    private func main(_ command: Outline) -> String {
        let function = ShellText.functionName(command.path)
        let specifications =
            command.visibleOptions.flatMap { specification($0, command) }
            + (command.subcommands.isEmpty
                ? command.operands.map { specification($0, command) }
                : ["'1:command:\(function)_commands'", "'*::argument:->behind'"])
        let arguments = (["    _arguments -s -S -C"] + specifications).joined(separator: " \\\n        ")
        guard !command.subcommands.isEmpty else { return "\(function)() {\n\(arguments)\n}" }
        let branches = command.subcommands.map { next in
            "        \(next.name)) \(ShellText.functionName(next.path)) ;;"
        }
        let topics = command.helpTopics == .none ? ";" : "; \(name(command, "help-topics"));"
        return """
            \(function)() {
                local curcontext=$curcontext state line ret=1
                local -A opt_args
            \(arguments) && ret=0
                [[ $state == behind ]] || return ret
                case $line[1] in
            \(branches.joined(separator: "\n"))
                    help) ((CURRENT > 2)) || { \(function)_commands\(topics) } ;;
                esac
            }
            """
    }

    private func commands(_ command: Outline) -> String {
        let function = ShellText.functionName(command.path)
        let described = command.visibleSubcommands.map { next in
            ShellText.quoted(
                "\(next.name):\(ShellText.escaped(Wording.onOneLine(next.summary), ["\\", ":"]))")
        }
        return """
            \(function)_commands() {
                local -a commands=(
                    \((described + ["'help:shows the help of a command'"]).joined(separator: "\n        "))
                )
                _describe -t commands command commands
            }
            """
    }

    /// Returns the function that offers lines, if the candidates are some.
    private func lines(of candidates: Candidates?, as function: String) -> [String] {
        let (source, files): (String, String)
        switch candidates {
        case .lines(let command)?: (source, files) = (command, "")
        case .linesAndFiles(let command)?: (source, files) = (command, "\n    _files")
        default: return []
        }
        return [
            """
            \(function)() {
                local -a found=("${(@f)$(eval \(ShellText.quoted(source)) 2>/dev/null)}")
                compadd -a found\(files)
            }
            """
        ]
    }

    private func specification(_ option: OptionDeclaration, _ command: Outline) -> [String] {
        let spellings = ShellText.spellings(option)
        let excluded = option.isRepeated ? "*" : "(\(spellings.joined(separator: " ")))"
        return spellings.map { spelling in
            let words = ShellText.summary(option, as: spelling)
            let summary = "[\(ShellText.escaped(words, ["\\", "[", "]", ":"]))]"
            guard case .value(let placeholder, let candidates) = option.form else {
                return ShellText.quoted(excluded + spelling + summary)
            }
            let joint = spelling.hasPrefix("--") ? "=" : "+"
            return ShellText.quoted(
                excluded + spelling + joint + summary + ":"
                    + value(placeholder, candidates, name(command, option.name)))
        }
    }

    private func specification(_ operand: OperandDeclaration, _ command: Outline) -> String {
        let place = operand.isRepeated ? "*:" : operand.isRequired ? ":" : "::"
        return ShellText.quoted(
            place + value(operand.name, operand.candidates, name(command, operand.name)))
    }

    private func value(_ placeholder: String, _ candidates: Candidates, _ function: String) -> String {
        let message = ShellText.escaped(placeholder, ["\\", ":"])
        let action =
            switch candidates {
            case .none: " "
            case .words(let words):
                "(" + words.map { ShellText.escaped($0, Self.special) }.joined(separator: " ") + ")"
            case .files: "_files"
            case .directories: "_files -/"
            case .lines, .linesAndFiles: function
            }
        return "\(message):\(action)"
    }

    private static let special: Set<Character> = [
        " ", "\\", ":", "(", ")", "'", "\"", "$", "`", "*", "?", "[", "]", "{", "}", "&", ";", "|", "<", ">",
        "~", "#",
    ]

    private func name(_ command: Outline, _ parameter: String) -> String {
        let word = parameter.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" }
        return "\(ShellText.functionName(command.path))__of_\(String(word))"
    }
}
