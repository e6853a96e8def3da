/// Options that belong together, declared once for all commands that take them.
///
/// Help lists them under the group's title. What they mean together is made, and checked, in one place:
///
///     static let options = OptionGroup("Session options", name, transport) { name, transport in
///         SessionOptions(name: name, transport: transport)
///     }
public struct OptionGroup<Value: Sendable>: Parameter {
    /// What help, completion and the parser know of its options.
    public let declarations: [Declaration]
    private let read: @Sendable (Given) throws(Misuse) -> Value

    /// A group of options under a title.
    ///
    /// - Parameter make: Makes one value of theirs. It is called while a command line is parsed; what it throws is told
    ///   as a misuse.
    public init<each Part: Parameter>(
        _ title: String, _ parts: repeat each Part,
        make: @escaping @Sendable (repeat (each Part).Value) throws -> Value
    ) {
        var declarations: [Declaration] = []
        repeat declarations += (each parts).declarations
        self.declarations = declarations.map { declaration in
            guard case .option(var option) = declaration.subject else { return declaration }
            option.section = option.section ?? title
            return Declaration(subject: .option(option))
        }
        read = { given throws(Misuse) in
            do { return try make(repeat (each parts).value(in: given)) } catch {
                throw Misuse(telling: error)
            }
        }
    }

    /// Its value on this command line.
    public func value(in given: Given) throws(Misuse) -> Value { try read(given) }
}

extension Misuse {
    /// `error` as it is, if it is one already; in its words otherwise.
    init(telling error: any Error) { self = error as? Misuse ?? Misuse("\(error)") }
}
