// The folder where the transports meet: whether it can be trusted, who is in it, and what the dead have left.
//
// Who advertises has files there under an ID of its own: `ID.socket`, `ID.about` with the advertisement, and for a moment `.ID.new`,
// which becomes `ID.about`. It holds a lock on `ID.about` while it lives; where nobody does, whoever finds that clears away.
import Glibc
import NighCore
import NighUV

final class Folder {
    let path: String
    let descriptor: Int32
    private var facts = stat()

    /// Opens the folder, made if it is missing. Fails unless it is one that this user alone may write.
    init(at path: String) throws(NighError) {
        mkdir(path, 0o700)  // If it fails for a reason that counts, the next line does too.
        self.path = path
        descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0, fstat(descriptor, &facts) == 0 else {
            let words = String(cString: strerror(errno))
            throw Self.unavailable(
                "the folder \(path): \(words)", "`mkdir -p -m 700 \(path)`, or choose another folder")
        }
        _ = try isThere()
    }

    deinit { close(descriptor) }

    /// Whether this is what lies at its path. Fails once it is not to be trusted any more.
    func isThere() throws(NighError) -> Bool {
        var now = stat()
        guard lstat(path, &now) == 0, now.st_dev == facts.st_dev, now.st_ino == facts.st_ino else {
            return false
        }
        guard now.st_uid == geteuid() else {
            throw Self.unavailable(
                "the folder \(path) belongs to user \(now.st_uid)", "choose a folder of your own")
        }
        guard now.st_mode & 0o022 == 0 else {
            throw Self.unavailable("others may write the folder \(path)", "`chmod go-w \(path)`")
        }
        return true
    }

    private static func unavailable(_ what: String, _ advice: String) -> NighError {
        NighError(.starting, .unavailable(what), transport: "unix", advice: advice)
    }

    static func socket(of id: String) -> String { "\(id).socket" }
    static func about(of id: String) -> String { "\(id).about" }
    static func new(of id: String) -> String { ".\(id).new" }

    /// What the living advertise, by ID; clears away after the dead. Nil when that could not be found out.
    func advertisements() -> [String: Advertisement]? {
        let copy = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard copy >= 0, let entries = fdopendir(copy) else { return nil }
        defer { closedir(entries) }
        var ids: Set<String> = []
        for _ in 0..<4_096 {  // However full somebody makes it.
            guard let entry = readdir(entries) else { break }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            let id = name.split(separator: ".").first.map(String.init) ?? ""
            let isOurs = [Self.socket(of: id), Self.about(of: id), Self.new(of: id)].contains(name)
            if isOurs && id.utf8.count == 16 && UInt64(id, radix: 16) != nil { ids.insert(id) }
        }
        var advertisements: [String: Advertisement] = [:]
        for id in ids {
            switch look(at: id) {
            case .living(let advertisement): advertisements[id] = advertisement
            case .dead: remove(id)
            case .unknown: return nil
            }
        }
        return advertisements
    }

    private enum Look {
        /// Nothing that makes sense is advertised if it is nil.
        case living(Advertisement?)
        case dead, unknown
    }

    private func look(at id: String) -> Look {
        for _ in 0..<3 {
            // Whatever lies there: a link is not followed, and another program's end of a pipe is not waited for.
            let file = openat(descriptor, Self.about(of: id), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
            guard file >= 0 else {
                if errno == EMFILE || errno == ENFILE { return .unknown }
                return errno == ENOENT && isOrphan(id) ? .dead : .living(nil)
            }
            defer { close(file) }
            var opened = stat()
            guard fstat(file, &opened) == 0, opened.st_mode & S_IFMT == S_IFREG else { return .living(nil) }
            guard flock(file, LOCK_SH | LOCK_NB) == 0 else {
                var bytes = [UInt8](repeating: 0, count: Advertisement.maximumByteCount + 1)
                let count = pread(file, &bytes, bytes.count, 0)
                return .living(Advertisement(bytes: Array(bytes.prefix(max(count, 0)))))
            }
            // Nobody holds it. Of the living that is true only of what they have replaced since it was opened.
            if status(of: Self.about(of: id))?.st_ino == opened.st_ino { return .dead }
        }
        return .living(nil)
    }

    /// Whether its owner died before it had advertised: it takes less than a minute to do so.
    private func isOrphan(_ id: String) -> Bool {
        let remains = [Self.socket(of: id), Self.new(of: id)].compactMap { status(of: $0)?.st_mtim.tv_sec }
        return remains.allSatisfy { $0 < time(nil) - 60 }
    }

    /// What the system says of a file here, without following a link.
    func status(of name: String) -> stat? {
        var facts = stat()
        return fstatat(descriptor, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 ? facts : nil
    }

    /// Removes all that belongs to `id`; last the file that tells whose the others are.
    func remove(_ id: String) {
        for name in [Self.new(of: id), Self.socket(of: id), Self.about(of: id)] {
            unlinkat(descriptor, name, 0)
        }
    }
}
