/// Options that belong together, declared once for all commands that accept them.
///
/// Help lists them under the group's title, or only names them if the group is shared by many commands. One closure
/// makes and checks their combined value:
///
///     static let options = OptionGroup("Session options", name, transport) { name, transport in
///         SessionOptions(name: name, transport: transport)
///     }
public struct OptionGroup<Value: Sendable>: Parameter {
    /// The options as help, completion and the parser see them.
    public let declarations: [Declaration]
    private let read: @Sendable (RawArguments) throws(UsageError) -> Value

    /// Creates a group of options under a title.
    ///
    /// - Parameters:
    ///   - title: The heading.
    ///   - isShared: Whether many commands have these options. `help options` then shows them, and the help of a
    ///     command only names them.
    ///   - make: Makes one value from the options' values. It is called while a command line is parsed; an error that
    ///     it throws is reported as a usage error.
    public init<each Part: Parameter>(
        _ title: String, isShared: Bool = false, _ parts: repeat each Part,
        make: @escaping @Sendable (repeat (each Part).Value) throws -> Value
    ) {
        var declarations: [Declaration] = []
        repeat declarations += (each parts).declarations
        self.declarations = declarations.map { declaration in
            guard case .option(var option) = declaration.subject else { return declaration }
            option.section = option.section ?? title
            option.isShared = option.isShared || isShared
            return Declaration(subject: .option(option))
        }
        read = { arguments throws(UsageError) in
            do { return try make(repeat (each parts).value(in: arguments)) } catch {
                throw UsageError(wrapping: error)
            }
        }
    }

    /// Returns the group's value on this command line.
    public func value(in arguments: RawArguments) throws(UsageError) -> Value { try read(arguments) }
}

extension UsageError {
    /// Uses `error` itself if it is a usage error, otherwise its description.
    init(wrapping error: any Error) { self = error as? UsageError ?? UsageError("\(error)") }
}
