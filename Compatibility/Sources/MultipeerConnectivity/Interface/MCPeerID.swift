import NighCore

/// A peer: this one or another.
///
/// Two peers with the same display name are two peers. A peer stays the same if its ID is archived and later
/// unarchived: the archive has the name and the public part of the peer's key. The private part is in a file of this
/// user's, so an archive that is given away does not let anybody else be this peer.
open class MCPeerID: NSObject, NSCopying, NSSecureCoding {
    let known: KnownPeer

    /// The name that the peer shows to people.
    open var displayName: String { known.name }

    /// Creates a new peer.
    ///
    /// - Parameter myDisplayName: 1 to 63 bytes of UTF-8 without control characters. An empty name becomes the name of
    ///   this host, because on Linux Foundation often has no `Host.current().localizedName`, from which programs make
    ///   their name.
    public init(displayName myDisplayName: String) {
        let name =
            myDisplayName.isEmpty
            ? "\(DisplayName(fitting: ProcessInfo.processInfo.hostName))" : myDisplayName
        precondition(
            DisplayName(exactly: name) != nil,
            "the display name of an MCPeerID has 1 to 63 bytes of UTF-8 without control characters")
        known = KnownPeer(new: name)
        super.init()
    }

    init(_ known: KnownPeer) {
        self.known = known
        super.init()
    }

    // MARK: Archives

    private enum Key {
        static let name = "displayName"
        static let id = "peerID"
    }

    /// Archives have no other classes in them than those of Foundation.
    open class var supportsSecureCoding: Bool { true }

    /// Reads an ID from an archive. If the peer's private key is a file of this user's, it is a peer of this user's
    /// again.
    public required init?(coder: NSCoder) {
        guard let name = coder.decodeObject(of: NSString.self, forKey: Key.name),
            let bytes = coder.decodeObject(of: NSData.self, forKey: Key.id),
            let id = PeerID(bytes: Data(referencing: bytes)),
            DisplayName(exactly: String(describing: name)) != nil
        else { return nil }
        known = LocalPeers.shared.peer(id, name: String(describing: name))
        super.init()
    }

    /// Writes the ID into an archive, and keeps the private key of a peer of this program's in a file.
    open func encode(with coder: NSCoder) {
        known.keep()
        coder.encode(NSString(string: known.name), forKey: Key.name)
        coder.encode(NSData(data: Data(known.id.bytes)), forKey: Key.id)
    }

    // MARK: Comparing

    /// Returns the same object, which does not change.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// Whether both are the same peer, regardless of their names.
    open override func isEqual(_ object: Any?) -> Bool { (object as? MCPeerID)?.known.id == known.id }

    /// The beginning of the peer's hash, which is the same in all programs.
    open override var hash: Int {
        known.id.bytes.prefix(8).reduce(0) { $0 << 8 | Int($1) }
    }

    /// The display name and the beginning of the peer's hash.
    open override var description: String { "<MCPeerID: \(known.id.short) DisplayName = \(known.name)>" }
}
