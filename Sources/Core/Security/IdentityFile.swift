import Glibc

/// The file an identity is kept in, so that a program is the same peer each time it starts.
///
/// Holds the private key as PKCS#8 in PEM, without a password: what protects it is that only its owner may read it.
/// So a file that others can read or write, or that somebody else owns, is refused, and a file that cannot be read
/// as a key is reported; no file is ever replaced. Called before a session starts, never on its loop: it
/// reads and writes a disk.
public struct IdentityFile: Hashable, Sendable {
    /// Where the file is, or will be.
    public let path: String

    /// More bytes than any Ed25519 key in PEM has, with room for comments.
    private static let maximumByteCount = 16 * 1024

    /// The file at `path`; a relative path counts from the working directory.
    public init(path: String) { self.path = path }

    /// The user's own file: `nigh/identity.pem` in `$XDG_DATA_HOME`, or where that is unset in `~/.local/share`.
    public init() throws(NighError) {
        try self.init(
            dataFolder: getenv("XDG_DATA_HOME").map { String(cString: $0) },
            homeFolder: getenv("HOME").map { String(cString: $0) })
    }

    /// The user's own file under these two folders. One that is no absolute path counts as unset, as the XDG
    /// specification has it.
    init(dataFolder: String?, homeFolder: String?) throws(NighError) {
        if let dataFolder, dataFolder.hasPrefix("/") {
            path = dataFolder + "/nigh/identity.pem"
        } else if let homeFolder, homeFolder.hasPrefix("/") {
            path = homeFolder + "/.local/share/nigh/identity.pem"
        } else {
            throw NighError(
                .identity, .unavailable("there is no home folder to keep the identity in"),
                advice: "set HOME, or name the identity file")
        }
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
        try create()
        // Read back rather than handed on: what counts is the file, which another program may have made first.
        if let identity = try read() { return identity }
        throw refusal("it is a symbolic link to nothing", advice: "remove the link, or make its target")
    }

    /// The identity in the file; nil if there is no file.
    private func read() throws(NighError) -> Identity? {
        // Not blocking, or a pipe in the file's place would hold up the program for ever.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            let number = errno
            if number == ENOENT { return nil }
            try checkOwnerAndKind(status: Self.status(of: path))
            throw systemError(number, "cannot open \(path)")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw systemError(errno, "cannot examine \(path)") }
        try checkOwnerAndKind(status: status)
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw refusal("others may read or write it (mode \(mode))", advice: "`chmod 600 \(quoted)`")
        }
        guard status.st_size > 0 else {
            throw refusal("it is empty", advice: Self.replaceAdvice)
        }
        guard status.st_size <= Self.maximumByteCount else {
            throw refusal("it is far too large for a key", advice: Self.replaceAdvice)
        }
        let text = SecretBytes(count: Int(status.st_size))
        let whole = try text.withBytes { bytes throws(NighError) in try fill(bytes, from: descriptor) }
        guard whole else { throw refusal("it became shorter while it was read", advice: "try again") }
        do {
            return Identity(try KeyPair(pem: text))
        } catch {
            switch error {
            case .damaged: throw refusal("it is damaged: no private key in PEM", advice: Self.replaceAdvice)
            case .encrypted: throw refusal("its key is locked with a password", advice: "keep it without one")
            case .anotherKind(let kind):
                throw refusal("it holds \(kind), not an Ed25519 private key", advice: Self.replaceAdvice)
            }
        }
    }

    /// Reads until `bytes` is full; false if the file ends before.
    private func fill(
        _ bytes: UnsafeMutableRawBufferPointer, from descriptor: Int32
    ) throws(NighError) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let target = UnsafeMutableRawBufferPointer(rebasing: rest)
            let count = Glibc.read(descriptor, target.baseAddress, target.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw systemError(errno, "cannot read \(path)") }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    private static let replaceAdvice =
        "restore it from a backup; or move it away to become a new peer, whom nobody knows yet"

    private func checkOwnerAndKind(status: stat?) throws(NighError) {
        guard let status else { return }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw refusal("it is no regular file", advice: "name a file, or a folder's file to be created")
        }
        guard status.st_uid == geteuid() else {
            throw refusal(
                "it belongs to user \(status.st_uid), this program runs as \(geteuid())",
                advice: "`chown \(geteuid()) \(quoted)`, or name another file")
        }
    }

    private static func status(of path: String) -> stat? {
        var status = stat()
        return stat(path, &status) == 0 ? status : nil
    }

    /// Makes a new identity's file, whole or not at all. Does nothing if a file has come to be there meanwhile.
    private func create() throws(NighError) {
        let folder = Self.folder(of: path)
        try makeFolder(folder)
        let text = try KeyPair.random().pem()
        let draft = "\(folder)/.identity-\(String(UInt64.random(in: .min ... .max), radix: 36))"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw systemError(errno, "cannot create a file in \(folder)") }
        defer { unlink(draft) }
        do {
            defer { close(descriptor) }
            try text.withBytes { bytes throws(NighError) in try write(bytes, to: descriptor) }
        }
        // Unlike a rename, a link never takes the place of what another program has put there.
        guard link(draft, path) == 0 || errno == EEXIST else {
            throw systemError(errno, "cannot create \(path)", advice: "name a file on another file system")
        }
        let parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if parent >= 0 {
            fsync(parent)
            close(parent)
        }
    }

    private func write(_ bytes: UnsafeMutableRawBufferPointer, to descriptor: Int32) throws(NighError) {
        // The process's file mode mask may have taken bits away.
        guard fchmod(descriptor, 0o600) == 0 else { throw systemError(errno, "cannot protect \(path)") }
        var rest = bytes[...]
        while !rest.isEmpty {
            let source = UnsafeMutableRawBufferPointer(rebasing: rest)
            let count = Glibc.write(descriptor, source.baseAddress, source.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw systemError(errno, "cannot write \(path)") }
            rest = rest.dropFirst(count)
        }
        guard fsync(descriptor) == 0 else { throw systemError(errno, "cannot write \(path)") }
    }

    /// Makes `folder` and those above it that are missing, for their owner alone.
    private func makeFolder(_ folder: String) throws(NighError) {
        if mkdir(folder, 0o700) == 0 { return }
        var number = errno
        if number == ENOENT {
            let parent = Self.folder(of: folder)
            guard parent != folder else { throw systemError(number, "cannot create the folder \(folder)") }
            try makeFolder(parent)
            if mkdir(folder, 0o700) == 0 { return }
            number = errno
        }
        let status = Self.status(of: folder)
        guard number == EEXIST, let status, status.st_mode & S_IFMT == S_IFDIR else {
            throw systemError(number == EEXIST ? ENOTDIR : number, "cannot create the folder \(folder)")
        }
    }

    private static func folder(of path: String) -> String {
        var bytes = path.utf8[...]
        while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        let folder = path[..<slash]
        return folder.isEmpty ? "/" : String(folder)
    }

    /// The path as a person can paste it into a shell.
    private var quoted: String {
        let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-")
        if path.allSatisfy(plain.contains), !path.hasPrefix("-") { return path }
        let parts = path.split(separator: "'", omittingEmptySubsequences: false)
        return "'" + parts.joined(separator: "'\\''") + "'"
    }

    private func refusal(_ why: String, advice: String) -> NighError {
        NighError(.identity, .invalid("identity file \(path): \(why)"), advice: advice)
    }

    private func systemError(_ number: Int32, _ what: String, advice: String? = nil) -> NighError {
        NighError(.identity, .system(number, "\(what): \(String(cString: strerror(number)))"), advice: advice)
    }
}
