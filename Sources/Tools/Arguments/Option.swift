/// An option of a command: how it is written, what help says of it, and what type its value has.
///
/// Which of the initializers declares it decides that type: without a default the value may be nil, with one it never
/// is, a required one is never absent, a repeated one is an array, a flag a `Bool`.
public struct Option<Value: Sendable>: Parameter {
    let declaration: OptionDeclaration
    private let read: @Sendable ([String]) throws(Misuse) -> Value

    /// What help, completion and the parser know of it.
    public var declarations: [Declaration] { [Declaration(subject: .option(declaration))] }

    /// Its value on this command line.
    public func value(in given: Given) throws(Misuse) -> Value {
        try read(given.options[declaration.name] ?? [])
    }

    /// An option that may be left out: then its value is nil.
    public init<Written>(
        _ name: String, short: Character? = nil, _ notation: Notation<Written>, isHidden: Bool = false,
        _ summary: String
    ) where Value == Written? {
        declaration = .init(name, short, notation, summary, isHidden: isHidden)
        read = { given throws(Misuse) in
            guard let text = given.last else { return nil }
            return try notation.value(of: text, for: "--\(name)")
        }
    }

    /// An option that may be left out: then its value is the default, which help tells.
    public init(
        _ name: String, short: Character? = nil, _ notation: Notation<Value>, default absent: Value,
        isHidden: Bool = false, _ summary: String
    ) {
        let remark = "default \(notation.write(absent))"
        declaration = .init(name, short, notation, summary, remark: remark, isHidden: isHidden)
        read = { given throws(Misuse) in
            guard let text = given.last else { return absent }
            return try notation.value(of: text, for: "--\(name)")
        }
    }

    /// An option without which the command cannot do anything.
    public init(
        required name: String, short: Character? = nil, _ notation: Notation<Value>, _ summary: String
    ) {
        var declaration = OptionDeclaration(name, short, notation, summary, remark: "required")
        declaration.isRequired = true
        self.declaration = declaration
        read = { given throws(Misuse) in
            guard let text = given.last else { throw Misuse("--\(name) \(notation.placeholder) is missing") }
            return try notation.value(of: text, for: "--\(name)")
        }
    }

    /// An option that may be given any number of times: its value has all that were given, in their order.
    public init<Written>(
        repeated name: String, short: Character? = nil, _ notation: Notation<Written>, isHidden: Bool = false,
        _ summary: String
    ) where Value == [Written] {
        var declaration = OptionDeclaration(
            name, short, notation, summary, remark: "may be repeated", isHidden: isHidden)
        declaration.isRepeated = true
        self.declaration = declaration
        read = { given throws(Misuse) in
            var values: [Written] = []
            for text in given { values.append(try notation.value(of: text, for: "--\(name)")) }
            return values
        }
    }

    /// A flag: true where it was given.
    public init(flag name: String, short: Character? = nil, isHidden: Bool = false, _ summary: String)
    where Value == Bool {
        declaration = OptionDeclaration(
            name: name, short: short, form: .flag, summary: summary, remarks: [], isHidden: isHidden)
        read = { given throws(Misuse) in !given.isEmpty }
    }

    /// A flag that can be given both ways: `--name` makes it true, `--no-name` false.
    public init(
        switch name: String, short: Character? = nil, default absent: Bool, isHidden: Bool = false,
        _ summary: String
    ) where Value == Bool {
        declaration = OptionDeclaration(
            name: name, short: short, form: .negatable, summary: summary,
            remarks: ["default --\(absent ? name : OptionDeclaration.negation(of: name))"], isHidden: isHidden
        )
        read = { given throws(Misuse) in given.last.map { $0 == name } ?? absent }
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
