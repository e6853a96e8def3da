/// A parameter of a command: an `Option`, an `Operand`, or an `OptionGroup` of them.
///
/// A command lists its parameters. Its closure is called with their values, in the same order and with their types. So
/// everything declared can be read, everything read was declared, and the compiler checks both.
public protocol Parameter<Value>: Sendable {
    /// The type that the command's closure receives.
    associatedtype Value: Sendable

    /// The options and operands as help, completion and the parser see them.
    var declarations: [Declaration] { get }

    /// Returns the parameter's value on this command line. Called once while it is parsed.
    func value(in arguments: RawArguments) throws(UsageError) -> Value
}

/// An option or operand as help, completion and the parser see it.
public struct Declaration: Sendable {
    enum Subject: Sendable {
        case option(OptionDeclaration)
        case operand(OperandDeclaration)
    }

    let subject: Subject
}

/// The arguments of one command: still text, sorted by option and operand.
public struct RawArguments: Sendable {
    /// The values of each option by its long name, in the order given.
    var options: [String: [String]] = [:]
    var operands: [String: [String]] = [:]
}

struct OptionDeclaration: Hashable, Sendable {
    enum Form: Hashable, Sendable {
        case flag
        /// `--name` and `--no-name`.
        case negatable
        case value(placeholder: String, Candidates)
    }

    let name: String
    let short: Character?
    let form: Form
    let summary: String
    /// The remarks that help adds in parentheses.
    let remarks: [String]
    var isRequired = false
    var isRepeated = false
    var isHidden = false
    /// The heading under which help lists the option; nil for the common one.
    var section: String?
    /// Whether many commands have the option, so that the help of one command only names it.
    var isShared = false
    /// Names of earlier versions; those with one letter are short. They are understood, and shown nowhere.
    var olderNames: [String] = []

    var longNames: [String] { form == .negatable ? [name, Self.negation(of: name)] : [name] }
    var candidates: Candidates? {
        if case .value(_, let candidates) = form { candidates } else { nil }
    }

    static func negation(of name: String) -> String { "no-\(name)" }

    static let help = OptionDeclaration(
        name: "help", short: "h", form: .flag, summary: "shows this help", remarks: [])
    static let version = OptionDeclaration(
        name: "version", short: nil, form: .flag, summary: "shows the version", remarks: [])
}

struct OperandDeclaration: Hashable, Sendable {
    let name: String
    let summary: String
    let remarks: [String]
    let candidates: Candidates
    var isRequired = false
    var isRepeated = false
}
