/// An invalid command line: it asks for something that does not exist, or leaves out something required.
///
/// Thrown by `Program.parse`, by a program's own `Notation` for an invalid value, and by a command's closure if several
/// values do not fit together.
public struct UsageError: Error, Hashable, Sendable, CustomStringConvertible {
    /// One sentence without a full stop: the mistake, and the remedy.
    public let description: String

    /// The exit status of a program after a usage error.
    public static let status: Int32 = 2

    /// Creates a usage error with this description. The description may repeat the user's words: characters that would
    /// move a terminal's cursor are replaced.
    public init(_ description: String) { self.description = Wording.sanitized(description) }

    /// Returns the error with a reference to more help, such as `nigh ping --help`. The errors that `Program.parse`
    /// throws already have it.
    public func addingReference(to command: String) -> UsageError {
        UsageError("\(description) (see \(command))")
    }
}
