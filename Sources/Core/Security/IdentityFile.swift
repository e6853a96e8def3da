/// The file an identity is kept in, so that a program is the same peer each time it starts.
///
/// Holds the private key as PKCS#8 in PEM, without a password: what protects it is that only its owner may read it.
/// So a file that others can read or write, or that somebody else owns, is refused, and a file that cannot be read
/// as a key is reported; no file is ever replaced. Above the key stands the PeerID it makes, because every seed is a
/// key: without it a bit that flips on the disk would make another peer, and nobody would be told. Called before a
/// session starts, never on its loop: it reads and writes a disk.
public struct IdentityFile: Hashable, Sendable {
    private let file: ProtectedFile

    private static let kind = ProtectedFile.Kind(
        stage: .identity, name: "identity file",
        // More than any Ed25519 key in PEM has, with room for comments.
        maximumByteCount: 16 * 1024, tooLarge: "it is far too large for a key",
        forbiddenMode: 0o077, exposed: "others may read or write it", isReplaced: false,
        replaceAdvice: "restore it from a backup; or move it away to become a new peer, whom nobody knows yet"
    )

    /// Where the file is, or will be.
    public var path: String { file.path }

    /// The file at `path`; a relative path counts from the working directory.
    public init(path: String) { file = ProtectedFile(path: path, kind: Self.kind) }

    /// The user's own file: `nigh/identity.pem` in `$XDG_DATA_HOME`, or where that is unset in `~/.local/share`.
    public init() throws(NighError) { file = try .ofThisUser("identity.pem", kind: Self.kind) }

    /// The user's own file under these two folders.
    init(dataFolder: String?, homeFolder: String?) throws(NighError) {
        let folder = DataFolder.path(dataHome: dataFolder, home: homeFolder)
        file = try .ofThisUser("identity.pem", kind: Self.kind, in: folder)
    }

    /// Reads the identity. If there is no file, makes a new identity and keeps it there, unless `createIfMissing` is
    /// false. Of several programs that do so at once, all get the same one.
    public func load(createIfMissing: Bool = true) throws(NighError) -> Identity {
        if let identity = try read() { return identity }
        guard createIfMissing else {
            throw NighError(
                .identity, .unavailable("there is no identity file \(path)"),
                advice: "create one, or name another")
        }
        try file.create(Self.text(of: Identity(.random())))
        // Read back rather than handed on: what counts is the file, which another program may have made first.
        if let identity = try read() { return identity }
        throw file.refusal("it is a symbolic link to nothing", advice: "remove the link, or make its target")
    }

    /// Moves the file out of the way, whatever is in it: the next `load` makes a new identity, and so a new peer. Returns where
    /// it is kept now, beside where it was and with the day in its name; nil if there was no file.
    public func setAside() throws(NighError) -> String? { try file.setAside(as: "\(CalendarDay.today())") }

    /// The identity in the file; nil if there is no file.
    private func read() throws(NighError) -> Identity? {
        guard let text = try file.read() else { return nil }
        let identity: Identity
        do {
            identity = Identity(try KeyPair(pem: text))
        } catch {
            switch error {
            case .damaged: throw unusable("it is damaged: no private key in PEM")
            case .encrypted:
                throw file.refusal("its key is locked with a password", advice: "keep it without one")
            case .anotherKind(let kind): throw unusable("it holds \(kind), not an Ed25519 private key")
            }
        }
        // A file that another program made says nothing about whose it is.
        guard let owner = Self.owner(in: text) else { return identity }
        guard owner == identity.peerID.description else {
            let named = PeerID(owner).map { "PeerID \($0)" } ?? "the PeerID in the line above it"
            throw unusable("it is damaged: the key does not belong to \(named)")
        }
        return identity
    }

    private func unusable(_ why: String) -> NighError { file.refusal(why, advice: Self.kind.replaceAdvice) }

    // MARK: The line above the key

    /// PEM lets text stand before its first line; this begins ours.
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

    /// What stands behind the mark; nil where there is none before the key. Only that line leaves the secret bytes.
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
