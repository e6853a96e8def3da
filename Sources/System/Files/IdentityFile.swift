import NighCore

/// The file that stores an identity, so that a program is the same peer each time it starts.
///
/// The file contains the private key as PKCS#8 in PEM, without a password; only its owner may read it, and that
/// protects it. So Nigh refuses a file that others can read or write or that somebody else owns, reports a file that is
/// not a key, and never replaces a file.
///
/// The PeerID stands above the key. Every seed is a valid key, so without the PeerID a flipped bit on the
/// disk would silently make another peer.
///
/// Call this before a session starts, never on its loop: it reads and writes a disk.
public struct IdentityFile: Hashable, Sendable {
    private let file: ProtectedFile

    private static let kind = ProtectedFile.Kind(
        stage: .identity, name: "identity file",
        // Larger than any Ed25519 key in PEM, with room for comments.
        maximumByteCount: 16 * 1024, tooLarge: "it is far too large for a key",
        forbiddenMode: 0o077, exposed: "others may read or write it", isReplaced: false,
        replaceAdvice: "restore it from a backup, or move it away to become a new peer that nobody knows yet"
    )

    /// The path of the file, which need not exist yet.
    public var path: String { file.path }

    /// Creates a reference to the file at `path`. A relative path is relative to the working directory.
    public init(path: String) { file = ProtectedFile(path: path, kind: Self.kind) }

    /// Creates a reference to the user's own file: `nigh/identity.pem` in `$XDG_DATA_HOME`, or
    /// in `~/.local/share` if that is unset.
    public init() throws(NighError) { file = try .ofThisUser("identity.pem", kind: Self.kind) }

    /// Creates a reference to the user's own file, for a user with these two folders.
    init(dataFolder: String?, homeFolder: String?) throws(NighError) {
        let folder = DataFolder.path(dataHome: dataFolder, home: homeFolder)
        file = try .ofThisUser("identity.pem", kind: Self.kind, in: folder)
    }

    /// Reads the identity. If there is no file, creates a new identity and stores
    /// it, unless `createIfMissing` is false.
    ///
    /// If several programs do this at the same time, all of them get the same identity.
    public func load(createIfMissing: Bool = true) throws(NighError) -> Identity {
        if let identity = try read() { return identity }
        guard createIfMissing else {
            throw NighError(
                .identity, .unavailable("there is no identity file \(path)"),
                advice: "create one, or name another")
        }
        return try create(with: Identity(.random()))
    }

    /// Stores an identity that exists already, such as an ephemeral one, so that the program is the same peer from now
    /// on. Does nothing if the file holds this identity. Fails if it holds anything else: no file is replaced.
    public func save(_ identity: Identity) throws(NighError) {
        guard try create(with: identity) == identity else {
            throw file.refusal(
                "it holds another identity", advice: "name another file, or move this one away")
        }
    }

    /// Creates the file unless there is one, and returns the identity in it.
    private func create(with identity: Identity) throws(NighError) -> Identity {
        try file.create(Self.text(of: identity))
        // Read back instead of returned directly, because another program may have created the file first.
        if let stored = try read() { return stored }
        throw file.refusal(
            "it is a symbolic link to a file that does not exist",
            advice: "remove the link, or create its target")
    }

    /// Renames the file, whatever it contains, so that the next `load` creates a new identity and so a new peer.
    ///
    /// Returns the new path, in the same folder and with the day in its name. Nil if there was no file.
    public func setAside() throws(NighError) -> String? { try file.setAside(as: "\(CalendarDay.today())") }

    /// Returns the identity in the file, or nil if there is no file.
    private func read() throws(NighError) -> Identity? {
        guard let text = try file.read() else { return nil }
        let identity: Identity
        do {
            identity = Identity(try KeyPair(pem: text))
        } catch {
            switch error {
            case .damaged: throw unusable("it is damaged: it contains no private key in PEM")
            case .encrypted:
                throw file.refusal("its key is locked with a password", advice: "keep it without one")
            case .anotherKind(let kind): throw unusable("it holds \(kind), not an Ed25519 private key")
            }
        }
        // A file from another program does not name its PeerID.
        guard let owner = Self.owner(in: text) else { return identity }
        guard owner == identity.peerID.description else {
            let named = PeerID(owner).map { "PeerID \($0)" } ?? "the PeerID in the line above it"
            throw unusable("it is damaged: the key does not belong to \(named)")
        }
        return identity
    }

    private func unusable(_ reason: String) -> NighError {
        file.refusal(reason, advice: Self.kind.replaceAdvice)
    }

    // MARK: The line above the key

    /// The beginning of our line. PEM allows text before its first line.
    private static let ownerMark = "PeerID: "
    private static let firstLineOfKey = Array("-----BEGIN ".utf8)

    private static func text(of identity: Identity) throws(NighError) -> SecretBytes {
        let owner = Array("\(ownerMark)\(identity.peerID)\n".utf8)
        let key = try identity.keyPair.pem()
        let text = SecretBytes(count: owner.count + key.count)
        text.withBytes { bytes in
            bytes.copyBytes(from: owner)
            key.withBytes {
                UnsafeMutableRawBufferPointer(rebasing: bytes[owner.count...]).copyBytes(from: $0)
            }
        }
        return text
    }

    /// Returns the text behind the mark, or nil if there is no such line before the key. Only that
    /// line is copied from the secret bytes.
    private static func owner(in text: SecretBytes) -> String? {
        text.withBytes { bytes in
            for line in bytes.split(separator: UInt8(ascii: "\n")) {
                if line.starts(with: firstLineOfKey) { return nil }
                guard line.starts(with: ownerMark.utf8) else { continue }
                let owner = line.dropFirst(ownerMark.utf8.count)
                return String(
                    decoding: owner.last == UInt8(ascii: "\r") ? owner.dropLast() : owner, as: UTF8.self)
            }
            return nil
        }
    }
}
