/// A program's command line: one table of commands that the parser, help, errors, completion and manual are made from.
///
/// A program declares its commands and parameters as values, and passes its arguments to `parse`. Everything here is
/// pure: nothing is printed, read or run, and the caller handles the outcome or the `UsageError`. No value is looked up
/// by a key that may be missing: a command's closure receives the values of the parameters that the command lists, in
/// the same order.
///
/// ```
/// enum Request: Sendable {
///     case host(Seat, board: Int)
///     case join(Seat, table: String?)
/// }
///
/// /// A player: the same options for both commands.
/// struct Seat: Sendable {
///     var name: String?
///     var transport: String
///
///     static let options = OptionGroup(
///         "Who plays, and over what",
///         Option("name", short: "n", .text("NAME"), "what others see you as"),
///         Option("transport", .choice(["tcp", "bluetooth", "memory"]), default: "tcp", "what carries the game")
///     ) { name, transport in Seat(name: name, transport: transport) }
/// }
///
/// let game = Program(
///     Command(
///         "connect", "Plays Connect Four with somebody near",
///         subcommands: [
///             Command(
///                 "host", "Opens a table", Seat.options,
///                 Option("columns", .integer(in: 4...20), default: 7, "how wide the board is"),
///                 examples: [Example("--name Puma --columns 9", "on a wide board")]
///             ) { seat, columns in Request.host(seat, board: columns) },
///             Command(
///                 "join", "Sits down at a table", Seat.options,
///                 Operand(optional: "TABLE", .text(), "whose table; the first one found without it")
///             ) { seat, table in Request.join(seat, table: table) },
///         ]), version: "1.0")
///
/// func answer(_ arguments: [String]) -> String {
///     do {
///         switch try game.parse(arguments) {
///         case .action(.host(let seat, let columns)): return "\(seat.name ?? "?") hosts, \(columns) wide"
///         case .action(.join(_, let table)): return "joins \(table ?? "anybody")"
///         case .text(let text): return text
///         }
///     } catch {
///         return "connect: \(error)"
///     }
/// }
/// ```
///
/// One test of the program asserts that `problems` is empty, so that no table contradicts itself.
public struct Program<Action: Sendable>: Sendable {
    let root: Command<Action>
    let version: String?
    let sections: [Section]
    let outline: Outline

    /// Creates a program.
    ///
    /// - Parameters:
    ///   - root: The first command, whose name is the program's name.
    ///   - version: The text that `--version` shows; without it, there is no such option.
    ///   - sections: Further sections of the program's help and manual.
    ///   - helpTopics: The words that the program itself takes behind `help`, besides its commands, for completion.
    ///   - footer: The last paragraph of the program's help; nil for a sentence about the help of its commands.
    public init(
        _ root: Command<Action>, version: String? = nil, sections: [Section] = [],
        helpTopics: Candidates = .none,
        footer: String? = nil
    ) {
        self.root = root
        self.version = version
        self.sections = sections
        var outline = root.outline(with: version == nil ? [.help] : [.help, .version])
        outline.helpTopics = helpTopics
        outline.footer = footer
        self.outline = outline
    }

    /// Parses `arguments`. They do not include the program's own name.
    ///
    /// - Parameters:
    ///   - defaults: The values of options that the arguments do not give.
    ///   - width: The number of columns of help, if that is asked for.
    public func parse(
        _ arguments: [String], defaults: [OptionDefault] = [], width: Int = 80
    ) throws(UsageError) -> Outcome<Action> {
        var command = root
        var outline = self.outline
        var rest = arguments[...]
        while let name = rest.first, let index = outline.subcommands.firstIndex(where: { $0.name == name }) {
            (command, outline) = (command.subcommands[index], outline.subcommands[index])
            rest.removeFirst()
        }
        do throws(UsageError) {
            if outline.offersHelpCommand, rest.first == "help" {
                return .text(
                    try help(for: Array((outline.path + rest.dropFirst()).dropFirst()), width: width))
            }
            // A command that does nothing by itself shows its subcommands.
            if command.make == nil, rest.isEmpty {
                return .text(HelpText.write(outline, in: self.outline, sections, width: width))
            }
            switch try Scan.read(rest, for: outline, in: self.outline) {
            case .help: return .text(HelpText.write(outline, in: self.outline, sections, width: width))
            case .version: return .text("\(self.outline.name) \(version ?? "")\n")
            case .arguments(var arguments):
                for value in defaults {
                    if let problem = value.problem(in: self.outline) { throw problem }
                    try value.add(to: &arguments, of: outline)
                }
                guard let make = command.make else {
                    throw UsageError(
                        "a command is missing: \(Wording.list(outline.visibleSubcommands.map(\.name)))")
                }
                return .action(try make(arguments))
            }
        } catch {
            throw error.addingReference(to: "\(outline.title) --help")
        }
    }

    private static var sharedOptions: String { "options" }

    /// The names of the commands directly below the program's own, without the hidden ones.
    public var commandNames: [String] { outline.visibleSubcommands.map(\.name) }

    /// Returns the help of a command; each line ends with a newline.
    ///
    /// - Parameters:
    ///   - path: The command's names below the program's own; empty for the program's help. `options` for the options
    ///     that many commands have.
    ///   - width: The number of columns. Only a word that is longer exceeds them.
    public func help(for path: [String] = [], width: Int = 80) throws(UsageError) -> String {
        var outline = self.outline
        if path == [Self.sharedOptions], !outline.sharedOptions.isEmpty {
            return HelpText.writeShared(of: outline, sections, width: width)
        }
        for name in path {
            guard let next = outline.subcommand(name) else {
                guard !outline.subcommands.isEmpty else {
                    throw UsageError(
                        "\(outline.title) has no subcommands: leave out \(Wording.quoted(name))")
                }
                throw Scan.noCommand(name, in: outline)
            }
            outline = next
        }
        return HelpText.write(outline, in: self.outline, sections, width: width)
    }

    /// Returns a script that lets a shell complete the program's command lines.
    ///
    /// The script does not start the program when the user presses Tab, unless a parameter's `Candidates` name it.
    public func completion(for shell: Shell) -> String {
        switch shell {
        case .bash: BashCompletion(outline).script
        case .zsh: ZshCompletion(outline).script
        case .fish: FishCompletion(outline).script
        }
    }

    /// Returns the program's manual page, for `man`.
    ///
    /// - Parameters:
    ///   - section: The section of the manual: 1 for commands, 6 for games.
    ///   - date: The date of the last change, such as `2026-02-28`.
    ///   - hasPages: Whether each command has a manual page of its own, to which this one refers.
    public func manual(section: Int = 1, date: String, hasPages: Bool = false) -> String {
        page(section, date).write(hasPages: hasPages)
    }

    /// Returns the manual page of a command below the program's own, such as `nigh-send`; nil if there is no such
    /// command.
    public func manual(of name: String, section: Int = 1, date: String) -> String? {
        outline.visibleSubcommands.first { $0.name == name }.map { page(section, date).write($0) }
    }

    private func page(_ section: Int, _ date: String) -> ManualPage {
        ManualPage(
            root: outline, sections: sections, section: section, date: date,
            source: [outline.name, version].compactMap { $0 }.joined(separator: " "))
    }

    /// Returns the reference of all commands that are not hidden, as Markdown. Each has a heading of the first level.
    public var markdown: String { MarkdownPage.write(outline, sections) }

    /// The contradictions in this table, a sentence each. A test of the program asserts that there are none.
    ///
    /// Even with such a contradiction, `parse` fails only with a `UsageError`.
    public var problems: [String] {
        outline.all.flatMap(TableCheck.problems) + exampleProblems
    }

    private var exampleProblems: [String] {
        outline.all.flatMap { command in
            command.examples.compactMap { example in
                do throws(UsageError) {
                    _ = try parse(command.path.dropFirst() + example.arguments)
                    return nil
                } catch {
                    return "the example \"\(command.title) \(example.line)\" is none: \(error)"
                }
            }
        }
    }
}
