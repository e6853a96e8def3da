/// The command line asks for what there is not, or leaves out what is needed.
public struct Misuse: Error, Hashable, Sendable, CustomStringConvertible {
    /// One sentence without a full stop: what is wrong, and what to do instead.
    public let description: String

    /// A misuse told in these words.
    public init(_ description: String) { self.description = description }
}
