/// The completion script for bash: one function that finds its position on the command line, and offers the words that
/// fit there.
///
/// Offered words never pass through anything that would expand them (`compgen -W` does), and are quoted before they
/// reach the command line, because they may come from strangers.
struct BashCompletion {
    private let root: Outline
    private let function: String

    init(_ root: Outline) {
        self.root = root
        function = ShellText.functionName(root.path)
    }

    var script: String {
        """
        # Completes \(root.name) in bash. Source it, or save it where bash-completion looks:
        # ~/.local/share/bash-completion/completions/\(root.name)

        # Offers those lines of the standard input that begin with what is typed.
        \(function)_offer() {
            local line quoted
            while IFS= read -r line || [[ -n $line ]]; do
                [[ -n $line && $line == "$1"* ]] || continue
                printf -v quoted %q "$line"
                COMPREPLY+=("$2$quoted")
            done
        }

        # Offers paths, whose kind is the first argument, and lines of the standard input. bash quotes all of them.
        \(function)_paths() {
            local path line
            compopt -o filenames 2>/dev/null
            while IFS= read -r path; do COMPREPLY+=("$3$path"); done < <(compgen "$1" -- "$2")
            while IFS= read -r line; do
                [[ -n $line && $line == "$2"* ]] && COMPREPLY+=("$3$line")
            done
        }

        \(function)() {
            local current=${COMP_WORDS[COMP_CWORD]} at=\(ShellText.quoted(root.name)) prefix='' wants='' word
            local -i ended=0 operands=0 i
            COMPREPLY=()
            for ((i = 1; i < COMP_CWORD; i++)); do
                word=${COMP_WORDS[i]}
                if [[ -n $wants ]]; then
                    # Bash splits --name=value into three words.
                    [[ $word == '=' ]] || wants=''
                    continue
                fi
                if ((!ended && !operands)); then
                    case "$at $word" in
        \(ways)
                    esac
                fi
                if ((ended)); then
                    operands+=1
                    continue
                fi
                case "$at $word" in
        \(valueOptions)
                    *' --') ended=1 ;;
                    *' -'?*) ;;
                    *) operands+=1 ;;
                esac
            done
            [[ $current == '=' ]] && current=''
            # If bash is configured not to split --name=value.
            if [[ -z $wants && $current == --*=* ]] && ((!ended)); then
                prefix=${current%%=*}=
                case "$at ${current%%=*}" in
        \(valueOptions)
                esac
                current=${current#*=}
                [[ -n $wants ]] || return 0
            fi
            if [[ -n $wants ]]; then
                case $wants in
        \(values)
                    *) ;;
                esac
            elif [[ $current == -* ]] && ((!ended)); then
                case $at in
        \(options)
                esac
            else
                case "$at $operands" in
        \(operands)
                    *) ;;
                esac
            fi
        }

        complete -F \(function) \(root.name)

        """
    }

    private var ways: String {
        branches(ShellText.ways(in: root).map { "\(ShellText.quoted($0))) at+=\" $word\"; continue ;;" })
    }

    private var valueOptions: String {
        branches(
            withValues.map { command, option, _ in
                let spellings = ShellText.spellings(option).map { ShellText.quoted("\(command.title) \($0)") }
                return "\(spellings.joined(separator: " | "))) wants=\(key(command, option)) ;;"
            })
    }

    private var values: String {
        branches(
            withValues.compactMap { command, option, candidates in
                offer(candidates).map { "\(key(command, option))) \($0) ;;" }
            })
    }

    private var options: String {
        branches(
            root.all.map { command in
                let words = command.visibleOptions.flatMap { option in option.longNames.map { "--\($0)" } }
                return "\(ShellText.quoted(command.title))) \(offer(.words(words)) ?? ":") ;;"
            })
    }

    private var operands: String {
        branches(
            root.all.flatMap { command -> [String] in
                var lines: [String] = []
                let names = command.visibleSubcommands.map(\.name)
                if !names.isEmpty {
                    let own = ShellText.quoted("\(command.title) 0")
                    let help = ShellText.helpWays(to: command, in: root).map { ShellText.quoted("\($0) 0") }
                    lines.append("\(own)) \(offer(.words(names + ["help"])) ?? ":") ;;")
                    let topics = offer(command.helpTopics).map { "; \($0)" } ?? ""
                    lines.append(
                        "\(help.joined(separator: " | "))) \(offer(.words(names)) ?? ":")\(topics) ;;")
                }
                for (index, operand) in command.operands.enumerated() {
                    let place =
                        ShellText.quoted("\(command.title) ") + (operand.isRepeated ? "*" : "\(index)")
                    if let offer = offer(operand.candidates) { lines.append("\(place)) \(offer) ;;") }
                }
                return lines
            })
    }

    private func offer(_ candidates: Candidates) -> String? {
        switch candidates {
        case .none: nil
        case .words(let words):
            "\(function)_offer \"$current\" \"$prefix\" < <(printf '%s\\n' "
                + words.map(ShellText.quoted).joined(separator: " ") + ")"
        case .files: "\(function)_paths -f \"$current\" \"$prefix\" </dev/null"
        case .directories: "\(function)_paths -d \"$current\" \"$prefix\" </dev/null"
        case .lines(let command):
            "\(function)_offer \"$current\" \"$prefix\" < <(eval \(ShellText.quoted(command)) 2>/dev/null)"
        case .linesAndFiles(let command):
            "\(function)_paths -f \"$current\" \"$prefix\" < <(eval \(ShellText.quoted(command)) 2>/dev/null)"
        }
    }

    private var withValues: [(Outline, OptionDeclaration, Candidates)] {
        root.all.flatMap { command in
            command.options.compactMap { option in option.candidates.map { (command, option, $0) } }
        }
    }

    private func key(_ command: Outline, _ option: OptionDeclaration) -> String {
        ShellText.quoted("\(command.title) --\(option.name)")
    }

    /// Returns the branches of a `case`; if there are none, one that never matches.
    private func branches(_ lines: [String]) -> String {
        (lines.isEmpty ? ["'') ;;"] : lines).map { "                \($0)" }.joined(separator: "\n")
    }
}
