import NighCore

/// A file or a folder in an offer.
public struct FileItem: Hashable, Sendable {
    /// The kind of an item.
    public enum Kind: UInt8, Hashable, Sendable {
        /// A file with its content.
        case file = 0
        /// A folder without its content, which follows as items of its own.
        case folder = 1
    }

    /// Whether it is a file or a folder.
    public var kind: Kind
    /// The path within the offer: the name, or in an offered folder the names of the folders from the offered one down,
    /// with "/" between them. It is the sender's choice and may contain anything; the name on the receiver's disk
    /// follows from it by safe rules.
    public var path: String
    /// The number of bytes; nil if the sender knows it only at the end. 0 for a folder.
    public var size: Int?
    /// When the content last changed, in nanoseconds since 1970; nil if that is unknown.
    public var modified: Int?
    /// Whether the file is a program that its owner may run. A receiver keeps this only of senders that it trusts.
    public var isExecutable: Bool
    /// The media type, such as "image/jpeg"; empty if the sender does not say.
    public var type: String
    /// Data that the sender's program adds, at most 1,024 bytes.
    public var metadata: [UInt8]

    /// Creates an item.
    public init(
        _ kind: Kind = .file, path: String, size: Int?, modified: Int? = nil,
        isExecutable: Bool = false, type: String = "",
        metadata: [UInt8] = []
    ) {
        self.kind = kind
        self.path = path
        self.size = size
        self.modified = modified
        self.isExecutable = isExecutable && kind == .file
        self.type = type
        self.metadata = metadata
    }

    /// The last name of the path.
    public var name: String { components.last ?? path }

    /// The names in the path, the outermost folder first.
    package var components: [String] { path.pathComponents }

    /// The bytes of the item in the list of an offer, which is bounded.
    var listedBytes: Int { path.utf8.count + type.utf8.count + metadata.count }

    /// The largest size of a file, 32 TiB: the sizes of all items of an offer can be added without a check.
    package static let largestSize = 1 << 45
    /// The longest path, in bytes.
    package static let longestPath = 4_096
    /// The most names in a path.
    package static let mostComponents = 64
    /// The longest media type, in bytes.
    package static let longestType = 255
    /// The most bytes that the sender's program can add to an item.
    package static let longestMetadata = 1_024
}
