/// The notation of a value on the command line: how it is read from text, shown in help, and completed by a shell.
///
/// A program makes a notation for a type of its own:
///
///     static let name = Notation<DisplayName>("NAME") { text in
///         guard let name = DisplayName(exactly: text) else { throw UsageError("a name has 1 to 63 bytes") }
///         return name
///     }
public struct Notation<Value: Sendable>: Sendable {
    let placeholder: String
    let remark: String?
    let candidates: Candidates
    let write: @Sendable (Value) -> String
    private let read: @Sendable (String) throws -> Value

    /// Creates a notation.
    ///
    /// - Parameters:
    ///   - placeholder: The word that stands for the value in help, in capitals.
    ///   - remark: The text that help adds in parentheses, such as the bounds of a number.
    ///   - candidates: The completions that a shell offers for the value.
    ///   - write: Formats a default for help. `read` understands the result.
    ///   - read: Makes the value from text that is never empty, or throws an error whose description says what is
    ///     wrong. It is called while the command line is parsed, and does nothing else.
    public init(
        _ placeholder: String, remark: String? = nil, candidates: Candidates = .none,
        write: @escaping @Sendable (Value) -> String = { "\($0)" },
        read: @escaping @Sendable (String) throws -> Value
    ) {
        self.placeholder = placeholder
        self.remark = remark
        self.candidates = candidates
        self.write = write
        self.read = read
    }

    /// Returns the value of `text`. `subject` is the option or operand that the value is for.
    public func value(of text: String, for subject: String) throws(UsageError) -> Value {
        guard !text.isEmpty else { throw UsageError("\(subject) needs a value that is not empty") }
        do { return try read(text) } catch { throw UsageError("\(subject): \(error)") }
    }
}

extension Notation where Value == String {
    /// Any text except an empty one.
    public static func text(_ placeholder: String = "TEXT", candidates: Candidates = .none) -> Self {
        Notation(placeholder, candidates: candidates) { $0 }
    }

    /// The path of a file, which a shell completes. Nothing checks whether the file exists.
    public static func file(_ placeholder: String = "FILE") -> Self { .text(placeholder, candidates: .files) }

    /// The path of a directory, which a shell completes. Nothing checks whether the directory exists.
    public static func directory(_ placeholder: String = "DIRECTORY") -> Self {
        .text(placeholder, candidates: .directories)
    }

    /// One of these words. Without a placeholder, help shows the words in its place: `tcp|bluetooth`.
    ///
    /// - Parameter isListed: Whether help lists the words behind the summary, if there is a placeholder.
    public static func choice(
        _ words: [String], _ placeholder: String? = nil, isListed: Bool = true
    ) -> Self {
        Notation(
            placeholder ?? words.joined(separator: "|"),
            remark: isListed ? placeholder.map { _ in Wording.list(words) } : nil,
            candidates: .words(words)
        ) { text in
            guard words.contains(text) else { throw Notation.noChoice(text, words) }
            return text
        }
    }
}

extension Notation where Value: CaseIterable & RawRepresentable, Value.RawValue == String {
    /// One of the type's cases, by its raw value. Without a placeholder, help shows all of them in its place.
    public static func choice(of type: Value.Type, _ placeholder: String? = nil) -> Self {
        let words = type.allCases.map(\.rawValue)
        return Notation(
            placeholder ?? words.joined(separator: "|"),
            remark: placeholder.map { _ in Wording.list(words) },
            candidates: .words(words), write: { $0.rawValue }
        ) { text in
            guard let value = Value(rawValue: text) else { throw noChoice(text, words) }
            return value
        }
    }
}

extension Notation {
    /// One or more values of `element`, separated by commas.
    public static func list<Element>(of element: Notation<Element>, atMost limit: Int) -> Notation
    where Value == [Element] {
        Notation(
            element.placeholder, remark: element.remark, candidates: element.candidates,
            write: { $0.map(element.write).joined(separator: ",") }
        ) { text in
            let parts = text.split(separator: ",", omittingEmptySubsequences: false)
            guard parts.count <= limit else {
                throw UsageError("\(parts.count) values are given, at most \(limit) are allowed")
            }
            return try parts.map { part in
                guard !part.isEmpty else { throw UsageError("the list has an empty value") }
                return try element.read(String(part))
            }
        }
    }

    fileprivate static func noChoice(_ text: String, _ words: [String]) -> UsageError {
        let meant = SpellingSuggestion.closest(to: text, among: words).map { ": did you mean \($0)?" } ?? ""
        return UsageError("\(Wording.quoted(text)) is not \(Wording.list(words))\(meant)")
    }
}
