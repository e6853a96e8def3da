/// A command without what it makes: all that help, errors, completion and the manual know of it.
struct Outline: Sendable {
    /// From the program's name to the command's own.
    let path: [String]
    let summary: String
    let text: String
    /// The command's own, then `--help` and, of a program with a version, `--version`.
    let options: [OptionDeclaration]
    let operands: [OperandDeclaration]
    let examples: [Example]
    let subcommands: [Outline]
    let isHidden: Bool
    /// Whether it does something itself, not only by its subcommands.
    let isComplete: Bool

    var name: String { path[path.count - 1] }
    var title: String { path.joined(separator: " ") }
    var visibleOptions: [OptionDeclaration] { options.filter { !$0.isHidden } }
    var visibleSubcommands: [Outline] { subcommands.filter { !$0.isHidden } }

    /// Whether its first word may be `help`: not where that could be an operand.
    var offersHelpCommand: Bool { !subcommands.isEmpty || operands.isEmpty }

    /// This one and all below it.
    var all: [Outline] { [self] + subcommands.flatMap(\.all) }

    /// The same without what nobody is told of.
    var visible: [Outline] { [self] + visibleSubcommands.flatMap(\.visible) }

    func subcommand(_ name: String) -> Outline? { subcommands.first { $0.name == name } }
}
