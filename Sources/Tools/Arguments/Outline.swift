/// A command without its closure: everything that help, errors, completion and the manual know about it.
struct Outline: Sendable {
    /// The names from the program's to the command's own.
    let path: [String]
    let summary: String
    let text: String
    /// The command's own options, then `--help` and, for the first command of a program with a version, `--version`.
    let options: [OptionDeclaration]
    let operands: [OperandDeclaration]
    let examples: [Example]
    let subcommands: [Outline]
    let isHidden: Bool
    /// Whether the command does something itself, not only through its subcommands.
    let isComplete: Bool
    /// The heading above the command in the help of the command above it; nil for the common one.
    let group: String?
    /// The words that may follow `help` besides commands. Only the program's own command has some.
    var helpTopics = Candidates.none
    /// The last paragraph of the help, if it is not the one about the help of subcommands.
    var footer: String?

    var name: String { path[path.count - 1] }
    var title: String { path.joined(separator: " ") }
    var visibleOptions: [OptionDeclaration] { options.filter { !$0.isHidden } }
    var visibleSubcommands: [Outline] { subcommands.filter { !$0.isHidden } }

    /// Whether its first word may be `help`. It may not if the word could be an operand.
    var offersHelpCommand: Bool { !subcommands.isEmpty || operands.isEmpty }

    /// The headings under which help lists the visible subcommands, in order; nil is the common one.
    var groups: [String?] {
        var groups: [String?] = []
        for group in visibleSubcommands.map(\.group) where !groups.contains(group) { groups.append(group) }
        return groups
    }

    /// The options that many of these commands have, each once.
    var sharedOptions: [OptionDeclaration] {
        var options: [OptionDeclaration] = []
        for option in visible.flatMap(\.visibleOptions)
        where option.isShared && !options.contains(where: { $0.name == option.name }) {
            options.append(option)
        }
        return options
    }

    /// This command and all commands below it.
    var all: [Outline] { [self] + subcommands.flatMap(\.all) }

    /// This command and all visible commands below it.
    var visible: [Outline] { [self] + visibleSubcommands.flatMap(\.visible) }

    func subcommand(_ name: String) -> Outline? { subcommands.first { $0.name == name } }
}
