/// Why a file did not arrive, as one side tells the other.
public struct FileFault: Error, Hashable, Sendable {
    /// The kind of the reason.
    public let reason: Reason
    /// An explanation for a person: at most 255 bytes.
    public let explanation: String

    /// Creates a fault.
    public init(_ reason: Reason, _ explanation: String) {
        self.reason = reason
        self.explanation = explanation
    }

    /// The kind of the reason.
    public enum Reason: UInt8, Hashable, Sendable, CaseIterable {
        /// A reason that only a later version knows.
        case other = 0
        /// A person or a program ended the transfer. Sent again, the file continues where it stopped.
        case cancelled = 1
        /// The receiver does not want the file.
        case declined = 2
        /// The file is larger than the receiver accepts.
        case tooLarge = 3
        /// The receiver has no space for the file.
        case noSpace = 4
        /// The file changed while it was sent.
        case changed = 5
        /// The written bytes differ from those that were sent.
        case damaged = 6
        /// One side cannot read or write its file.
        case inaccessible = 7
        /// The receiver does not speak this version.
        case version = 8
        /// The other side broke the protocol.
        case violation = 9
    }
}
