/// An option of a command: its name, its help, and the type of its value.
///
/// The initializer decides the type of the value. Without a default the value may be nil; with a default it never is. A
/// required option always has a value. A repeated option has an array, a flag a `Bool`.
public struct Option<Value: Sendable>: Parameter {
    private(set) var declaration: OptionDeclaration
    private let read: @Sendable ([String]) throws(UsageError) -> Value

    /// The option as help, completion and the parser see it.
    public var declarations: [Declaration] { [Declaration(subject: .option(declaration))] }

    /// Returns the option's value on this command line.
    public func value(in arguments: RawArguments) throws(UsageError) -> Value {
        try read(arguments.options[declaration.name] ?? [])
    }

    /// Returns the same option, which also understands the names that it had in earlier versions. One of a single
    /// letter is short.
    public func formerly(_ names: String...) -> Option {
        var option = self
        option.declaration.olderNames = names
        return option
    }

    /// Creates an option that may be left out. Its value is then nil.
    public init<Written>(
        _ name: String, short: Character? = nil, _ notation: Notation<Written>, isHidden: Bool = false,
        _ summary: String
    ) where Value == Written? {
        declaration = .init(name, short, notation, summary, isHidden: isHidden)
        read = { texts throws(UsageError) in
            guard let text = texts.last else { return nil }
            return try notation.value(of: text, for: "--\(name)")
        }
    }

    /// Creates an option that may be left out. Its value is then the default, which help shows.
    public init(
        _ name: String, short: Character? = nil, _ notation: Notation<Value>, default absent: Value,
        isHidden: Bool = false, _ summary: String
    ) {
        let remark = "default \(notation.write(absent))"
        declaration = .init(name, short, notation, summary, remark: remark, isHidden: isHidden)
        read = { texts throws(UsageError) in
            guard let text = texts.last else { return absent }
            return try notation.value(of: text, for: "--\(name)")
        }
    }

    /// Creates an option that the command requires.
    public init(
        required name: String, short: Character? = nil, _ notation: Notation<Value>, _ summary: String
    ) {
        var declaration = OptionDeclaration(name, short, notation, summary, remark: "required")
        declaration.isRequired = true
        self.declaration = declaration
        read = { texts throws(UsageError) in
            guard let text = texts.last else {
                throw UsageError("--\(name) \(notation.placeholder) is missing")
            }
            return try notation.value(of: text, for: "--\(name)")
        }
    }

    /// Creates an option that may be given any number of times. Its value has all given values, in order.
    public init<Written>(
        repeated name: String, short: Character? = nil, _ notation: Notation<Written>, isHidden: Bool = false,
        _ summary: String
    ) where Value == [Written] {
        var declaration = OptionDeclaration(
            name, short, notation, summary, remark: "may be repeated", isHidden: isHidden)
        declaration.isRepeated = true
        self.declaration = declaration
        read = { texts throws(UsageError) in
            var values: [Written] = []
            for text in texts { values.append(try notation.value(of: text, for: "--\(name)")) }
            return values
        }
    }

    /// Creates a flag. It is true if it was given.
    public init(flag name: String, short: Character? = nil, isHidden: Bool = false, _ summary: String)
    where Value == Bool {
        declaration = OptionDeclaration(
            name: name, short: short, form: .flag, summary: summary, remarks: [], isHidden: isHidden)
        read = { texts throws(UsageError) in !texts.isEmpty }
    }

    /// Creates a flag that can be given both ways: `--name` makes it true, `--no-name` false.
    public init(
        switch name: String, short: Character? = nil, default absent: Bool, isHidden: Bool = false,
        _ summary: String
    ) where Value == Bool {
        declaration = OptionDeclaration(
            name: name, short: short, form: .negatable, summary: summary,
            remarks: ["default --\(absent ? name : OptionDeclaration.negation(of: name))"], isHidden: isHidden
        )
        read = { texts throws(UsageError) in texts.last.map { $0 == name } ?? absent }
    }
}

extension OptionDeclaration {
    fileprivate init(
        _ name: String, _ short: Character?, _ notation: Notation<some Sendable>, _ summary: String,
        remark: String? = nil, isHidden: Bool = false
    ) {
        self.init(
            name: name, short: short,
            form: .value(placeholder: notation.placeholder, notation.candidates), summary: summary,
            remarks: [notation.remark, remark].compactMap { $0 }, isHidden: isHidden)
    }
}
