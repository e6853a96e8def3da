import NighCore

/// The result for one file or folder of a transfer.
public struct FileResult: Hashable, Sendable {
    /// The file or folder, as it was offered.
    public let item: FileItem
    /// The path where it is now; nil at the sender, and for a file that is not kept under a name.
    public let path: String?
    /// The SHA-256 of a file that arrived.
    public let hash: [UInt8]?
    /// Why it did not arrive; nil if it did.
    public let error: NighError?

    /// Whether it is at the receiver, whole and verified.
    public var isComplete: Bool { error == nil }
}
