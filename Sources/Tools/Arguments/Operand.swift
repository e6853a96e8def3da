/// An operand of a command: what it is told by place, not by name.
///
/// As with an `Option`, the initializer decides the value's type. Operands take the words of a command line in the
/// order of their declaration: first those get theirs that must have one, then the others from left to right.
public struct Operand<Value: Sendable>: Parameter {
    let declaration: OperandDeclaration
    private let read: @Sendable ([String]) throws(Misuse) -> Value

    /// What help, completion and the parser know of it.
    public var declarations: [Declaration] { [Declaration(subject: .operand(declaration))] }

    /// Its value on this command line.
    public func value(in given: Given) throws(Misuse) -> Value {
        try read(given.operands[declaration.name] ?? [])
    }

    /// An operand that must be there. `name` is in capitals, as help and errors show it.
    public init(_ name: String, _ notation: Notation<Value>, _ summary: String) {
        let declaration = OperandDeclaration(name, notation, summary, isRequired: true)
        self.declaration = declaration
        read = { given throws(Misuse) in
            guard let text = given.first else { throw declaration.isMissing }
            return try notation.value(of: text, for: name)
        }
    }

    /// An operand that may be left out: then its value is nil.
    public init<Written>(optional name: String, _ notation: Notation<Written>, _ summary: String)
    where Value == Written? {
        declaration = OperandDeclaration(name, notation, summary)
        read = { given throws(Misuse) in
            guard let text = given.first else { return nil }
            return try notation.value(of: text, for: name)
        }
    }

    /// An operand that may be left out: then its value is the default, which help tells.
    public init(
        optional name: String, _ notation: Notation<Value>, default absent: Value, _ summary: String
    ) {
        declaration = OperandDeclaration(
            name, notation, summary, remark: "default \(notation.write(absent))")
        read = { given throws(Misuse) in
            guard let text = given.first else { return absent }
            return try notation.value(of: text, for: name)
        }
    }

    /// An operand that stands for any number of words, or for at least one where it is required.
    public init<Written>(
        repeated name: String, isRequired: Bool = false, _ notation: Notation<Written>, _ summary: String
    ) where Value == [Written] {
        var declaration = OperandDeclaration(name, notation, summary, isRequired: isRequired)
        declaration.isRepeated = true
        let declared = declaration
        self.declaration = declared
        read = { given throws(Misuse) in
            guard !given.isEmpty || !isRequired else { throw declared.isMissing }
            var values: [Written] = []
            for text in given { values.append(try notation.value(of: text, for: name)) }
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
        // Elsewhere the words stand where the operand's name stands here.
        if bounds == nil, case .words(let words) = notation.candidates { bounds = Wording.list(words) }
        self.init(
            name: name, summary: summary, remarks: [bounds, remark].compactMap { $0 },
            candidates: notation.candidates, isRequired: isRequired)
    }

    /// What is told where it was left out.
    var isMissing: Misuse { Misuse("\(name) is missing: \(summary)") }
}
