/// A command of a program: its name, its parameters, and the action made of their values.
///
/// `Action` is the program's own type: an enumeration with a case for each command, or a value that can be run. A
/// command is a value, declared beside the code that carries it out.
public struct Command<Action: Sendable>: Sendable {
    let name: String
    let summary: String
    let text: String
    let declarations: [Declaration]
    let examples: [Example]
    let subcommands: [Command]
    let isHidden: Bool
    private(set) var group: String?
    let make: (@Sendable (RawArguments) throws(UsageError) -> Action)?

    /// Creates a command that does something.
    ///
    /// - Parameters:
    ///   - name: The word that the user types.
    ///   - summary: What the command does, in one line that begins like a sentence and has no full stop.
    ///   - text: Further information. Empty lines separate paragraphs; a line that begins with a space stays as it is.
    ///   - parameters: Its options, operands and groups of options.
    ///   - examples: Example command lines for its help.
    ///   - subcommands: The commands below it, which its first word may name instead.
    ///   - isHidden: Whether help and completion leave it out.
    ///   - make: Makes the action from the parameters' values, in their order. It is called while a command line is
    ///     parsed; an error that it throws is reported as a usage error.
    public init<each Part: Parameter>(
        _ name: String, _ summary: String, text: String = "", _ parameters: repeat each Part,
        examples: [Example] = [], subcommands: [Command] = [], isHidden: Bool = false,
        make: @escaping @Sendable (repeat (each Part).Value) throws -> Action
    ) {
        self.name = name
        self.summary = summary
        self.text = text
        var declarations: [Declaration] = []
        repeat declarations += (each parameters).declarations
        self.declarations = declarations
        self.examples = examples
        self.subcommands = subcommands
        self.isHidden = isHidden
        self.make = { arguments throws(UsageError) in
            do {
                return try make(repeat (each parameters).value(in: arguments))
            } catch {
                throw UsageError(wrapping: error)
            }
        }
    }

    /// Creates a command that only has subcommands.
    public init(
        _ name: String, _ summary: String, text: String = "", examples: [Example] = [],
        subcommands: [Command],
        isHidden: Bool = false
    ) {
        self.name = name
        self.summary = summary
        self.text = text
        declarations = []
        self.examples = examples
        self.subcommands = subcommands
        self.isHidden = isHidden
        make = nil
    }

    /// Returns the same command under a heading of its own in the help of the command above it. Commands with one
    /// heading must follow each other.
    public func grouped(under heading: String) -> Command {
        var command = self
        command.group = heading
        return command
    }

    func outline(below path: [String] = [], with common: [OptionDeclaration]) -> Outline {
        var options: [OptionDeclaration] = []
        var operands: [OperandDeclaration] = []
        for declaration in declarations {
            switch declaration.subject {
            case .option(let option): options.append(option)
            case .operand(let operand): operands.append(operand)
            }
        }
        let path = path + [name]
        return Outline(
            path: path, summary: summary, text: text, options: options + common, operands: operands,
            examples: examples, subcommands: subcommands.map { $0.outline(below: path, with: [.help]) },
            isHidden: isHidden, isComplete: make != nil, group: group)
    }
}
