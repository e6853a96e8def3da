/// Text that the completion scripts for all shells share.
enum ShellText {
    /// Returns `text` in single quotes, as bash and zsh read them.
    static func quoted(_ text: String) -> String {
        "'" + text.map { $0 == "'" ? "'\\''" : String($0) }.joined() + "'"
    }

    /// Returns `text` with a backslash before each of `characters`.
    static func escaped(_ text: String, _ characters: Set<Character>) -> String {
        text.map { characters.contains($0) ? "\\\($0)" : String($0) }.joined()
    }

    /// Returns the name of a shell function for a command's path.
    static func functionName(_ path: [String]) -> String {
        "_" + path.joined(separator: "__").map { $0 == "-" ? "_" : String($0) }.joined()
    }

    /// Returns the spellings of an option, with their hyphens.
    static func spellings(_ option: OptionDeclaration) -> [String] {
        (option.short.map { ["-\($0)"] } ?? []) + option.longNames.map { "--\($0)" }
    }

    /// Returns the effect of a spelling of an option, for shells that show it.
    static func summary(_ option: OptionDeclaration, as spelling: String) -> String {
        let isNegation = option.longNames.dropFirst().contains { spelling == "--\($0)" }
        return isNegation ? "not --\(option.name)" : Wording.onOneLine(option.summary)
    }

    /// Returns all sequences of words that lead from the program's name to a command, or to the help of one.
    static func ways(in root: Outline) -> [String] {
        let commands = root.all.map(\.title).filter { $0 != root.title }
        return commands + root.all.flatMap { helpWays(to: $0, in: root) }
    }

    /// Returns the sequences of words that lead to the help of `command`. The word `help` may follow any command that
    /// has it.
    static func helpWays(to command: Outline, in root: Outline) -> [String] {
        let path = command.path
        var owner: Outline? = root
        return path.indices.compactMap { index in
            if index > 0 { owner = owner?.subcommand(path[index]) }
            guard owner?.offersHelpCommand == true else { return nil }
            return (path[...index] + ["help"] + path[(index + 1)...]).joined(separator: " ")
        }
    }
}
