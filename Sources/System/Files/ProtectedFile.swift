import Glibc
import NighCore

/// A file that only its owner may change, such as the identity file or the trust store's file.
///
/// Anybody who can write such a file can change who a peer is. So Nigh does not use a file that others can write or
/// replace, or that somebody else owns, and never leaves a file half written: after a crash at any moment, it has the
/// old content or the new. Every call reads or writes a disk and may block, so never call this on a session's loop.
package struct ProtectedFile: Hashable, Sendable {
    /// The kind of content, which determines the checks.
    package struct Kind: Hashable, Sendable {
        /// The stage of errors about the file.
        let stage: NighError.Stage
        /// The name of the file in messages.
        let name: String
        /// A longer file is refused, for the reason in `tooLarge`.
        let maximumByteCount: Int
        let tooLarge: String
        /// The permission bits that must not be set, and the reason for the refusal if one is.
        let forbiddenMode: mode_t
        let exposed: String
        /// Whether each change replaces the file with a new one. Then the path must not be a symbolic link, because the
        /// link itself would be replaced.
        let isReplaced: Bool
        /// The advice if the content is unusable.
        let replaceAdvice: String

        package init(
            stage: NighError.Stage, name: String, maximumByteCount: Int, tooLarge: String,
            forbiddenMode: mode_t, exposed: String, isReplaced: Bool, replaceAdvice: String
        ) {
            self.stage = stage
            self.name = name
            self.maximumByteCount = maximumByteCount
            self.tooLarge = tooLarge
            self.forbiddenMode = forbiddenMode
            self.exposed = exposed
            self.isReplaced = isReplaced
            self.replaceAdvice = replaceAdvice
        }
    }

    let path: String
    let kind: Kind
    /// How long another process may hold the lock before this process reports an error.
    private let lockTimeout: Moment.Span

    /// Creates a reference to the file at `path`. A relative path is relative to the working directory.
    package init(path: String, kind: Kind, lockTimeout: Moment.Span = .seconds(10)) {
        self.path = path
        self.kind = kind
        self.lockTimeout = lockTimeout
    }

    /// Returns the user's own file of this name: in `nigh` in `$XDG_DATA_HOME`, or
    /// in `~/.local/share` if that is unset.
    static func ofThisUser(_ name: String, kind: Kind) throws(NighError) -> ProtectedFile {
        try ofThisUser(name, kind: kind, in: DataFolder.ofThisUser)
    }

    /// Returns the file of this name in `folder`. Fails if `folder` is nil.
    static func ofThisUser(_ name: String, kind: Kind, in folder: String?) throws(NighError) -> ProtectedFile
    {
        if let folder { return ProtectedFile(path: folder + "/" + name, kind: kind) }
        throw NighError(
            kind.stage, .unavailable("there is no home folder to keep the \(kind.name) in"),
            advice: "set HOME, or name the \(kind.name)")
    }

    // MARK: Reading

    /// Reads the whole content. Nil if there is no file.
    package func read() throws(NighError) -> SecretBytes? {
        // Non-blocking, because opening a named pipe in the file's place would block forever.
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
            throw refusal("\(kind.exposed) (mode \(mode))", advice: "`chmod 600 \(ShellWord.quoted(path))`")
        }
        try checkFolders()
        guard status.st_size > 0 else { throw refusal("it is empty", advice: kind.replaceAdvice) }
        guard status.st_size <= kind.maximumByteCount else {
            throw refusal(kind.tooLarge, advice: kind.replaceAdvice)
        }
        let content = SecretBytes(count: Int(status.st_size))
        let whole = try content.withBytes { bytes throws(NighError) in try fill(bytes, from: descriptor) }
        guard whole else { throw refusal("it became shorter while it was read", advice: "try again") }
        return content
    }

    /// Reads until `bytes` is full. Returns false if the file ends earlier.
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
                advice: "`chown \(geteuid()) \(ShellWord.quoted(path))`, or name another file")
        }
    }

    private func checkKind(_ status: stat) throws(NighError) {
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw refusal("it is not a regular file", advice: "name a file, or a folder's file to be created")
        }
    }

    private static func status(of path: String) -> stat? {
        var status = stat()
        return stat(path, &status) == 0 ? status : nil
    }

    // MARK: Writing

    /// Creates the file with `content`, and its folder if that is missing. Does nothing if the file exists by then.
    /// The file never appears half written.
    func create(_ content: SecretBytes) throws(NighError) {
        try Self.makeFolder(folder, for: kind)
        try checkFolders()
        let draft = hiddenPath(String(UInt64.random(in: .min ... .max), radix: 36))
        defer { unlink(draft) }
        try write(content, to: draft)
        // Unlike a rename, a link never replaces a file that another program has created.
        guard link(draft, path) == 0 || errno == EEXIST else {
            throw systemError(errno, "cannot create \(path)", advice: "name a file on another file system")
        }
        syncFolder()
    }

    /// Replaces the content of the file. The file is never half written. Call this only inside `withLock`.
    func replace(with content: SecretBytes) throws(NighError) {
        // All drafts have the same name, because the lock keeps others away. A draft that a crash has left is removed
        // now.
        let draft = hiddenPath("draft")
        unlink(draft)
        defer { unlink(draft) }
        try write(content, to: draft)
        guard rename(draft, path) == 0 else { throw systemError(errno, "cannot replace \(path)") }
        syncFolder()
    }

    /// Renames the file within its folder, to a free name that ends with `suffix`. Returns the
    /// new path, or nil if there was no file.
    func setAside(as suffix: String) throws(NighError) -> String? {
        if let status = Self.status(of: path) { try checkKind(status) }
        for count in 1...1_000 {
            let target = "\(path).\(suffix)\(count == 1 ? "" : "-\(count)")"
            // Unlike a rename, a link never replaces an existing file.
            if link(path, target) != 0 {
                if errno == ENOENT { return nil }
                if errno == EEXIST { continue }
                throw systemError(errno, "cannot move \(path) to \(target)")
            }
            guard unlink(path) == 0 else { throw systemError(errno, "cannot move \(path) to \(target)") }
            syncFolder()
            return target
        }
        throw refusal("too many old copies of it exist", advice: "remove some of \(path).*")
    }

    /// Calls `body` while no other process or thread is inside this call for the same path. Creates
    /// the file's folder if it is missing.
    func withLock<Result>(_ body: () throws(NighError) -> Result) throws(NighError) -> Result {
        try Self.makeFolder(folder, for: kind)
        try checkFolders()
        let lock = hiddenPath("lock")
        // The lock file is never removed: one process could still hold the removed file while another creates it again.
        let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        let descriptor = open(lock, flags, 0o600)
        guard descriptor >= 0 else {
            throw systemError(errno, "cannot open \(lock)", advice: "remove it if it is not yours")
        }
        // The lock is released when the process ends, however it ends. Closing the descriptor releases it
        // too, unless another process has the descriptor: a process that another thread has just started
        // has it until it executes its program.
        defer { close(descriptor) }
        try wait(for: lock, descriptor)
        defer { flock(descriptor, LOCK_UN) }
        return try body()
    }

    /// Waits for the lock by trying again and again. A blocking call could wait forever for a process that
    /// was stopped while it holds the lock.
    private func wait(for lock: String, _ descriptor: Int32) throws(NighError) {
        let deadline = LoopThread.now + lockTimeout
        var pause: Int = 1_000_000
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else {
                throw systemError(errno, "cannot lock \(lock)")
            }
            guard LoopThread.now < deadline else {
                throw NighError(
                    kind.stage, .unavailable("another program has held \(lock) for \(lockTimeout)"),
                    advice: "see who with `fuser \(ShellWord.quoted(lock))`")
            }
            var time = timespec(tv_sec: 0, tv_nsec: pause)
            nanosleep(&time, nil)
            pause = min(pause * 2, 16_000_000)
        }
    }

    /// Writes a new file, which must not exist yet, and flushes it to the disk.
    private func write(_ content: SecretBytes, to draft: String) throws(NighError) {
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw systemError(errno, "cannot create a file in \(folder)") }
        defer { close(descriptor) }
        // The process's umask may have removed permission bits.
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

    /// Returns the path of a hidden file beside this one.
    private func hiddenPath(_ suffix: String) -> String {
        let name = path.split(separator: "/").last ?? "file"
        return "\(folder)/.\(name).\(suffix)"
    }

    /// Creates `folder` and its missing parents, accessible to their owner only.
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

    /// Refuses a path on which another user could replace this file.
    private func checkFolders() throws(NighError) {
        guard let exposure = PathExposure(ofFileAt: path) else { return }
        throw refusal(exposure.sentence, advice: exposure.advice ?? "name a file in a folder of your own")
    }

    /// Flushes the folder's new entry to the disk. Errors are ignored, because the content is already there.
    private func syncFolder() {
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

    /// Returns the error that the file cannot be used as it is.
    func refusal(_ reason: String, advice: String) -> NighError {
        NighError(kind.stage, .invalid("\(kind.name) \(path): \(reason)"), advice: advice)
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
}
