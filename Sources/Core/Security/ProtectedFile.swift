import Glibc

/// A file that only its owner may change, such as the one with an identity or the one with the peers its owner trusts.
///
/// Who can write such a file decides who somebody is. So nothing is believed of a file that others can write or that
/// somebody else owns, and nothing is half written: a crash at any moment leaves the old content or the new. Every
/// call reads or writes a disk and may block; none belongs on a session's loop.
struct ProtectedFile: Hashable, Sendable {
    /// What is kept in the file, and so how strictly it is guarded.
    struct Kind: Hashable, Sendable {
        /// What was being done when something about the file fails.
        let stage: NighError.Stage
        /// What a person calls the file.
        let name: String
        /// A longer file is refused, in the words behind it.
        let maximumByteCount: Int
        let tooLarge: String
        /// The permission bits that must not be set, and what it means if one is.
        let forbiddenMode: mode_t
        let exposed: String
        /// Whether each change puts a new file in the old one's place. Then the path must not be a symbolic link, which
        /// would be what is replaced, and others must not be able to do the same in its folder.
        let isReplaced: Bool
        /// What helps when the content is of no use.
        let replaceAdvice: String
    }

    let path: String
    let kind: Kind
    /// How long another process may hold the lock before that is an error.
    private let patience: Moment.Span

    /// The file at `path`; a relative path counts from the working directory.
    init(path: String, kind: Kind, patience: Moment.Span = .seconds(10)) {
        self.path = path
        self.kind = kind
        self.patience = patience
    }

    /// The user's own file of this name: in `nigh` in `$XDG_DATA_HOME`, or where that is unset in `~/.local/share`.
    static func ofThisUser(_ name: String, kind: Kind) throws(NighError) -> ProtectedFile {
        try ofThisUser(name, kind: kind, in: DataFolder.ofThisUser)
    }

    /// The file of this name in that folder, where there is one.
    static func ofThisUser(_ name: String, kind: Kind, in folder: String?) throws(NighError) -> ProtectedFile
    {
        if let folder { return ProtectedFile(path: folder + "/" + name, kind: kind) }
        throw NighError(
            kind.stage, .unavailable("there is no home folder to keep the \(kind.name) in"),
            advice: "set HOME, or name the \(kind.name)")
    }

    // MARK: Reading

    /// The whole content; nil if there is no file.
    func read() throws(NighError) -> SecretBytes? {
        // Not blocking, or a pipe in the file's place would hold up the program for ever.
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (kind.isReplaced ? O_NOFOLLOW : 0)
        let descriptor = open(path, flags)
        guard descriptor >= 0 else {
            let number = errno
            if number == ENOENT { return nil }
            if number == ELOOP, kind.isReplaced {
                throw refusal("it is a symbolic link", advice: "name the file that the link leads to")
            }
            try checkOwnerAndKind(status: Self.status(of: path))
            throw systemError(number, "cannot open \(path)")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw systemError(errno, "cannot examine \(path)") }
        try checkOwnerAndKind(status: status)
        guard status.st_mode & kind.forbiddenMode == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw refusal("\(kind.exposed) (mode \(mode))", advice: "`chmod 600 \(Self.quoted(path))`")
        }
        if kind.isReplaced { try checkFolder() }
        guard status.st_size > 0 else { throw refusal("it is empty", advice: kind.replaceAdvice) }
        guard status.st_size <= kind.maximumByteCount else {
            throw refusal(kind.tooLarge, advice: kind.replaceAdvice)
        }
        let content = SecretBytes(count: Int(status.st_size))
        let whole = try content.withBytes { bytes throws(NighError) in try fill(bytes, from: descriptor) }
        guard whole else { throw refusal("it became shorter while it was read", advice: "try again") }
        return content
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

    private func checkOwnerAndKind(status: stat?) throws(NighError) {
        guard let status else { return }
        try checkKind(status)
        guard status.st_uid == geteuid() else {
            throw refusal(
                "it belongs to user \(status.st_uid), this program runs as \(geteuid())",
                advice: "`chown \(geteuid()) \(Self.quoted(path))`, or name another file")
        }
    }

    private func checkKind(_ status: stat) throws(NighError) {
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw refusal("it is no regular file", advice: "name a file, or a folder's file to be created")
        }
    }

    private static func status(of path: String) -> stat? {
        var status = stat()
        return stat(path, &status) == 0 ? status : nil
    }

    // MARK: Writing

    /// Makes the file, whole or not at all, and its folder where that is missing. Does nothing if a file has come to
    /// be there meanwhile.
    func create(_ content: SecretBytes) throws(NighError) {
        try Self.makeFolder(folder, for: kind)
        let draft = hidden(String(UInt64.random(in: .min ... .max), radix: 36))
        defer { unlink(draft) }
        try write(content, to: draft)
        // Unlike a rename, a link never takes the place of what another program has put there.
        guard link(draft, path) == 0 || errno == EEXIST else {
            throw systemError(errno, "cannot create \(path)", advice: "name a file on another file system")
        }
        keepFolder()
    }

    /// Puts `content` in the place of what is there, whole or not at all. Only to be called inside `withLock`.
    func replace(with content: SecretBytes) throws(NighError) {
        // One name for all drafts: the lock keeps others from it, and what a crash has left here goes now.
        let draft = hidden("draft")
        unlink(draft)
        defer { unlink(draft) }
        try write(content, to: draft)
        guard rename(draft, path) == 0 else { throw systemError(errno, "cannot replace \(path)") }
        keepFolder()
    }

    /// Gives the file another name, in the same folder, that ends with `suffix` and was free; returns the path it has then, or nil if there was
    /// no file.
    func setAside(as suffix: String) throws(NighError) -> String? {
        if let status = Self.status(of: path) { try checkKind(status) }
        for count in 1...1_000 {
            let target = "\(path).\(suffix)\(count == 1 ? "" : "-\(count)")"
            // Unlike a rename, a link never takes the place of what is there.
            if link(path, target) != 0 {
                if errno == ENOENT { return nil }
                if errno == EEXIST { continue }
                throw systemError(errno, "cannot move \(path) to \(target)")
            }
            guard unlink(path) == 0 else { throw systemError(errno, "cannot move \(path) to \(target)") }
            keepFolder()
            return target
        }
        throw refusal("too many of it were set aside", advice: "remove some of \(path).*")
    }

    /// Calls `body` while no other process, and no other thread, is inside this call for the same path. Makes the
    /// file's folder where that is missing.
    func withLock<Result>(_ body: () throws(NighError) -> Result) throws(NighError) -> Result {
        try Self.makeFolder(folder, for: kind)
        try checkFolder()
        let lock = hidden("lock")
        // The lock file stays for ever: one that is removed could be held by one process and made anew by another.
        let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        let descriptor = open(lock, flags, 0o600)
        guard descriptor >= 0 else {
            throw systemError(errno, "cannot open \(lock)", advice: "remove it if it is not yours")
        }
        // The end of the process lets go of the lock, however it ends. Closing does so where nobody else has the descriptor; but
        // a process that another thread started meanwhile has it until it runs its program.
        defer { close(descriptor) }
        try wait(for: lock, descriptor)
        defer { flock(descriptor, LOCK_UN) }
        return try body()
    }

    /// Asks again and again instead of waiting inside the system, where nothing would end the wait for a process that
    /// was stopped with the lock in its hands.
    private func wait(for lock: String, _ descriptor: Int32) throws(NighError) {
        let deadline = Self.now() + patience
        var pause: Int = 1_000_000
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else {
                throw systemError(errno, "cannot lock \(lock)")
            }
            guard Self.now() < deadline else {
                throw NighError(
                    kind.stage, .unavailable("another program has held \(lock) for \(patience)"),
                    advice: "see who with `fuser \(Self.quoted(lock))`")
            }
            var time = timespec(tv_sec: 0, tv_nsec: pause)
            nanosleep(&time, nil)
            pause = min(pause * 2, 16_000_000)
        }
    }

    private static func now() -> Moment {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Moment(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Writes a file that must not be there yet, down to the disk.
    private func write(_ content: SecretBytes, to draft: String) throws(NighError) {
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw systemError(errno, "cannot create a file in \(folder)") }
        defer { close(descriptor) }
        // The process's file mode mask may have taken bits away.
        guard fchmod(descriptor, 0o600) == 0 else { throw systemError(errno, "cannot protect \(path)") }
        try content.withBytes { bytes throws(NighError) in
            var rest = bytes[...]
            while !rest.isEmpty {
                let source = UnsafeMutableRawBufferPointer(rebasing: rest)
                let count = Glibc.write(descriptor, source.baseAddress, source.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw systemError(errno, "cannot write \(path)") }
                rest = rest.dropFirst(count)
            }
        }
        guard fsync(descriptor) == 0 else { throw systemError(errno, "cannot write \(path)") }
    }

    // MARK: The folder

    private var folder: String { Self.folder(of: path) }

    /// A file beside this one that listings leave out.
    private func hidden(_ suffix: String) -> String {
        let name = path.split(separator: "/").last ?? "file"
        return "\(folder)/.\(name).\(suffix)"
    }

    /// Makes `folder` and those above it that are missing, for their owner alone.
    private static func makeFolder(_ folder: String, for kind: Kind) throws(NighError) {
        if mkdir(folder, 0o700) == 0 { return }
        var number = errno
        if number == ENOENT {
            let parent = Self.folder(of: folder)
            guard parent != folder else {
                throw systemError(number, "cannot create the folder \(folder)", for: kind)
            }
            try makeFolder(parent, for: kind)
            if mkdir(folder, 0o700) == 0 { return }
            number = errno
        }
        let status = Self.status(of: folder)
        guard number == EEXIST, let status, status.st_mode & S_IFMT == S_IFDIR else {
            throw systemError(
                number == EEXIST ? ENOTDIR : number, "cannot create the folder \(folder)", for: kind)
        }
    }

    /// Refuses a folder in which others could put another file into this one's place.
    private func checkFolder() throws(NighError) {
        guard let status = Self.status(of: folder) else {
            throw systemError(errno, "cannot examine the folder \(folder)")
        }
        switch FolderExposure(status) {
        case nil: return
        case .foreign(let user):
            throw refusal(
                "its folder belongs to user \(user), this program runs as \(geteuid())",
                advice: "name a file in a folder of your own")
        case .writable(let mode):
            throw refusal(
                "others may write its folder (mode \(String(mode & 0o777, radix: 8)))",
                advice: "`chmod go-w \(Self.quoted(folder))`")
        }
    }

    /// Puts the folder's new entry on the disk. The content is there already, so this is not worth failing for.
    private func keepFolder() {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    private static func folder(of path: String) -> String {
        var bytes = path.utf8[...]
        while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        let folder = path[..<slash]
        return folder.isEmpty ? "/" : String(folder)
    }

    // MARK: Errors

    /// That the file cannot be used as it is.
    func refusal(_ why: String, advice: String) -> NighError {
        NighError(kind.stage, .invalid("\(kind.name) \(path): \(why)"), advice: advice)
    }

    private func systemError(_ number: Int32, _ what: String, advice: String? = nil) -> NighError {
        Self.systemError(number, what, for: kind, advice: advice)
    }

    private static func systemError(
        _ number: Int32, _ what: String, for kind: Kind, advice: String? = nil
    ) -> NighError {
        NighError(
            kind.stage, .system(number, "\(what): \(String(cString: strerror(number)))"), advice: advice)
    }

    /// The path as a person can paste it into a shell.
    private static func quoted(_ path: String) -> String {
        let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-")
        if path.allSatisfy(plain.contains), !path.hasPrefix("-") { return path }
        let parts = path.split(separator: "'", omittingEmptySubsequences: false)
        return "'" + parts.joined(separator: "'\\''") + "'"
    }
}
