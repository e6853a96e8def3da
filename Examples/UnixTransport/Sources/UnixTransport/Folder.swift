// The folder in which programs meet: whether to trust it, which programs are in it, and which files killed programs
// have left there.
//
// A program that advertises has files of one ID there: `ID.socket`, which listens, `ID.about`, and `.ID.lock`, locked
// while it runs. A program that finds a free lock removes the files of its ID. Each is `.ID.new` until it is complete.
import Glibc
import NighTransport

final class Folder {
    let path: String
    let descriptor: Int32
    private let changes = inotify_init1(O_NONBLOCK | O_CLOEXEC)
    private var watch: DescriptorWatch?
    private var facts = stat()

    /// Opens the folder, which is made if it is missing. Throws unless this user alone may write to it.
    init(at path: String) throws(NighError) {
        mkdir(path, 0o700)  // If it fails for a reason that matters, the next line fails too.
        self.path = path
        descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0, fstat(descriptor, &facts) == 0 else {
            throw unusable(
                ": " + String(cString: strerror(errno)), "`mkdir -p -m 700 \(path)`, or choose another")
        }
        _ = try isInPlace()
    }

    deinit {
        watch?.cancel()
        close(changes)
        close(descriptor)
    }

    /// Whether this folder is still the one at its path. Throws once it cannot be trusted any more.
    func isInPlace() throws(NighError) -> Bool {
        var now = stat()
        guard lstat(path, &now) == 0, now.st_dev == facts.st_dev, now.st_ino == facts.st_ino else {
            return false
        }
        if now.st_uid != geteuid() {
            throw unusable(" is user \(now.st_uid)'s", "choose a folder of your own")
        }
        if now.st_mode & 0o022 != 0 { throw unusable(" may be written by others", "`chmod go-w \(path)`") }
        return true
    }

    private func unusable(_ finding: String, _ advice: String) -> NighError {
        NighError(.starting, .unavailable("the folder \(path)\(finding)"), transport: "unix", advice: advice)
    }

    /// Calls `changed` when something in the folder has changed; never, if the system has no watch left.
    func watch(on loop: UVEventLoop, changed: @escaping () -> Void) {
        let kinds = IN_MOVE | IN_DELETE | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF
        guard inotify_add_watch(changes, path, UInt32(kinds)) >= 0 else { return }
        watch = try? loop.watch(changes, for: [.readable]) { [changes] _ in
            var buffer = [UInt8](repeating: 0, count: 65_536)  // The next check finds out what changed.
            if read(changes, &buffer, buffer.count) > 0 { changed() }
        }
    }

    /// The advertisements of running programs, by ID. Removes the files that killed ones have left. Nil if no
    /// descriptor is left.
    func advertisements() -> [String: Advertisement]? {
        guard let entries = fdopendir(openFile(".")) else { return nil }
        defer { closedir(entries) }
        var found: [String: Advertisement] = [:]
        for _ in 0..<4_096 {  // However many files somebody puts there.
            guard let entry = readdir(entries) else { break }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            let id = String(name.dropFirst().prefix(16))
            guard UInt64(id, radix: 16) != nil, name == ".\(id).lock" else { continue }
            let (lock, about) = (openFile(name), openFile("\(id).about"))
            defer { for file in [lock, about] { close(file) } }
            // Without descriptors it is unknown whether that program runs, and what it advertises.
            if lock < 0 || about < 0, [EMFILE, ENFILE, ENOMEM].contains(errno) { return nil }
            let isAlive = lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) != 0
            if isAlive { found[id] = advertisement(in: about) } else { remove(id) }
        }
        return found
    }

    /// Reads an advertisement; nil for any other kind of file and for malformed content.
    private func advertisement(in file: Int32) -> Advertisement? {
        var (facts, bytes) = (stat(), [UInt8](repeating: 0, count: Advertisement.maximumByteCount + 1))
        guard fstat(file, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { return nil }
        let count = read(file, &bytes, bytes.count)
        return count < 0 ? nil : Advertisement(bytes: Array(bytes.prefix(count)))
    }

    /// Opens a file that others may have put there: follows no link, and does not wait for the end of a named pipe.
    private func openFile(_ name: String) -> Int32 {
        openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    }

    /// Puts a file of `id` there, invisible until `fill` has completed it. It stays open; the caller closes it.
    func put(_ name: String, of id: String, _ fill: (Int32) -> Bool) throws(NighError) -> Int32 {
        let new = ".\(id).new"
        let file = openat(descriptor, new, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600)
        if file >= 0, fill(file), renameat(descriptor, new, descriptor, name) == 0 { return file }
        defer { close(file) }
        throw SocketFault(errno).error(.advertising, transport: "unix")
    }

    func remove(_ id: String) {
        for name in [".\(id).new", "\(id).about", "\(id).socket", ".\(id).lock"] {
            unlinkat(descriptor, name, 0)
        }
    }
}
