/// What the scripts for all shells have in common.
enum ShellText {
    /// `text` in single quotes, as bash and zsh read them.
    static func quoted(_ text: String) -> String {
        "'" + text.map { $0 == "'" ? "'\\''" : String($0) }.joined() + "'"
    }

    /// `text` with a backslash before each of `characters`.
    static func escaped(_ text: String, _ characters: Set<Character>) -> String {
        text.map { characters.contains($0) ? "\\\($0)" : String($0) }.joined()
    }

    /// What a shell function may be called, of a command's path.
    static func functionName(_ path: [String]) -> String {
        "_" + path.joined(separator: "__").map { $0 == "-" ? "_" : String($0) }.joined()
    }

    /// How an option can be spelt, with its hyphens.
    static func spellings(_ option: OptionDeclaration) -> [String] {
        (option.short.map { ["-\($0)"] } ?? []) + option.longNames.map { "--\($0)" }
    }
}
