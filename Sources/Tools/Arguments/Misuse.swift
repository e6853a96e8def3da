/// The command line asks for what there is not, or leaves out what is needed.
///
/// Thrown by `Program.parse`, by a program's own `Notation` for a value that is none, and by whatever a command's
/// closure finds wrong with several values together.
public struct Misuse: Error, Hashable, Sendable, CustomStringConvertible {
    /// One sentence without a full stop: what is wrong, and what to do instead.
    public let description: String

    /// With which status a program ends after a misuse.
    public static let status: Int32 = 2

    /// A misuse told in these words. They may repeat what somebody typed: what would move a terminal's cursor is replaced.
    public init(_ description: String) { self.description = Wording.harmless(description) }

    /// The same with a place to read more, as in `nigh ping --help`. `Program.parse` has called this on what it throws.
    public func pointing(to command: String) -> Misuse { Misuse("\(description) (see \(command))") }
}
