/// A program's command line: one table of commands, from which come the parser, help, errors, completion and manual.
///
/// A program declares what it takes as values, and hands `parse` what it was started with. Everything here is pure:
/// nothing is printed, read or run, and the caller decides what becomes of an outcome or a `Misuse`. There is no key that
/// could be looked up in vain: a command's closure gets the values of what the command lists, in the same order.
///
/// ```
/// enum Request: Sendable {
///     case host(Seat, board: Int)
///     case join(Seat, table: String?)
/// }
///
/// /// Who plays: the same options for both commands.
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

    /// A program.
    ///
    /// - Parameters:
    ///   - root: Its first command, by whose name it is started.
    ///   - version: What `--version` tells; without it there is no such option.
    ///   - sections: What else the program's help and manual say.
    public init(_ root: Command<Action>, version: String? = nil, sections: [Section] = []) {
        self.root = root
        self.version = version
        self.sections = sections
        outline = root.outline(with: version == nil ? [.help] : [.help, .version])
    }

    /// What `arguments`, without the program's own name, ask for.
    ///
    /// - Parameter width: How many columns help has, where it is asked for.
    public func parse(_ arguments: [String], width: Int = 80) throws(Misuse) -> Outcome<Action> {
        var command = root
        var outline = self.outline
        var rest = arguments[...]
        while let name = rest.first, let index = outline.subcommands.firstIndex(where: { $0.name == name }) {
            (command, outline) = (command.subcommands[index], outline.subcommands[index])
            rest.removeFirst()
        }
        do throws(Misuse) {
            if outline.offersHelpCommand, rest.first == "help" {
                return .text(
                    try help(for: Array((outline.path + rest.dropFirst()).dropFirst()), width: width))
            }
            switch try Scan.read(rest, for: outline, in: self.outline) {
            case .help: return .text(HelpText.write(outline, in: self.outline, sections, width: width))
            case .version: return .text("\(self.outline.name) \(version ?? "")\n")
            case .given(let given):
                guard let make = command.make else {
                    throw Misuse(
                        "a command is missing: \(Wording.list(outline.visibleSubcommands.map(\.name)))")
                }
                return .action(try make(given))
            }
        } catch {
            throw error.pointing(to: "\(outline.title) --help")
        }
    }

    /// The help of a command, each line with its end.
    ///
    /// - Parameters:
    ///   - path: The command's names from below the program's own; the program's help where it is empty.
    ///   - width: How many columns there are. Only a word that is longer itself goes beyond them.
    public func help(for path: [String] = [], width: Int = 80) throws(Misuse) -> String {
        var outline = self.outline
        for name in path {
            guard let next = outline.subcommand(name) else {
                guard !outline.subcommands.isEmpty else {
                    throw Misuse(
                        "\(outline.title) has no commands below it, and so no \(Wording.quoted(name))")
                }
                throw Scan.noCommand(name, in: outline)
            }
            outline = next
        }
        return HelpText.write(outline, in: self.outline, sections, width: width)
    }

    /// A script that teaches a shell to complete the program's command lines.
    ///
    /// It is text alone: the program is not started when somebody presses Tab, unless a parameter's `Candidates` name it.
    public func completion(for shell: Shell) -> String {
        switch shell {
        case .bash: BashCompletion(outline).script
        case .zsh: ZshCompletion(outline).script
        case .fish: FishCompletion(outline).script
        }
    }

    /// The program's manual page, for `man`.
    ///
    /// - Parameters:
    ///   - section: Of the manual: 1 has commands, 6 games.
    ///   - date: When it was last changed, as in `2026-02-28`.
    public func manual(section: Int = 1, date: String) -> String {
        ManualPage(outline, sections).write(
            section: section, date: date,
            source: [outline.name, version].compactMap { $0 }.joined(separator: " "))
    }

    /// What in this table contradicts itself, a sentence each; a test of the program asserts that there is nothing.
    ///
    /// Nothing of that can make `parse` fail other than by a `Misuse`.
    public var problems: [String] {
        outline.all.flatMap(TableCheck.problems) + exampleProblems
    }

    private var exampleProblems: [String] {
        outline.all.flatMap { command in
            command.examples.compactMap { example in
                do throws(Misuse) {
                    _ = try parse(command.path.dropFirst() + example.arguments)
                    return nil
                } catch {
                    return "the example \"\(command.title) \(example.line)\" is none: \(error)"
                }
            }
        }
    }
}
