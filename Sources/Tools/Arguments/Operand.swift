/// An operand of a command: a value that is given by its position, not by a name.
///
/// As with an `Option`, the initializer decides the type of the value. Operands take the words of a command line in the
/// order of their declaration: first each required operand gets a word, then the others get theirs from left to right.
public struct Operand<Value: Sendable>: Parameter {
    let declaration: OperandDeclaration
    private let read: @Sendable ([String]) throws(UsageError) -> Value

    /// The operand as help, completion and the parser see it.
    public var declarations: [Declaration] { [Declaration(subject: .operand(declaration))] }

    /// Returns the operand's value on this command line.
    public func value(in arguments: RawArguments) throws(UsageError) -> Value {
        try read(arguments.operands[declaration.name] ?? [])
    }

    /// Creates a required operand. `name` is in capitals, as help and errors show it.
    public init(_ name: String, _ notation: Notation<Value>, _ summary: String) {
        let declaration = OperandDeclaration(name, notation, summary, isRequired: true)
        self.declaration = declaration
        read = { texts throws(UsageError) in
            guard let text = texts.first else { throw declaration.isMissing }
            return try notation.value(of: text, for: name)
        }
    }

    /// Creates an operand that may be left out. Its value is then nil.
    public init<Written>(optional name: String, _ notation: Notation<Written>, _ summary: String)
    where Value == Written? {
        declaration = OperandDeclaration(name, notation, summary)
        read = { texts throws(UsageError) in
            guard let text = texts.first else { return nil }
            return try notation.value(of: text, for: name)
        }
    }

    /// Creates an operand that may be left out. Its value is then the default, which help shows.
    public init(
        optional name: String, _ notation: Notation<Value>, default absent: Value, _ summary: String
    ) {
        declaration = OperandDeclaration(
            name, notation, summary, remark: "default \(notation.write(absent))")
        read = { texts throws(UsageError) in
            guard let text = texts.first else { return absent }
            return try notation.value(of: text, for: name)
        }
    }

    /// Creates an operand that takes any number of words, or at least one if it is required.
    public init<Written>(
        repeated name: String, isRequired: Bool = false, _ notation: Notation<Written>, _ summary: String
    ) where Value == [Written] {
        var declaration = OperandDeclaration(name, notation, summary, isRequired: isRequired)
        declaration.isRepeated = true
        let declared = declaration
        self.declaration = declared
        read = { texts throws(UsageError) in
            guard !texts.isEmpty || !isRequired else { throw declared.isMissing }
            var values: [Written] = []
            for text in texts { values.append(try notation.value(of: text, for: name)) }
            return values
        }
    }
}

extension OperandDeclaration {
    fileprivate init(
        _ name: String, _ notation: Notation<some Sendable>, _ summary: String, remark: String? = nil,
        isRequired: Bool = false
    ) {
        var bounds = notation.remark
        // An option shows the words as its placeholder. An operand shows its name there, so the words become a remark.
        if bounds == nil, case .words(let words) = notation.candidates { bounds = Wording.list(words) }
        self.init(
            name: name, summary: summary, remarks: [bounds, remark].compactMap { $0 },
            candidates: notation.candidates, isRequired: isRequired)
    }

    /// The error that is thrown if the operand is missing.
    var isMissing: UsageError { UsageError("\(name) is missing: \(summary)") }
}
