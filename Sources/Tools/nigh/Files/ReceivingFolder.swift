import Glibc
import NighCore

/// The folder that files are received into. It is held open, and everything happens by names in the open folder:
/// nothing is written anywhere else.
final class ReceivingFolder: Sendable {
    /// The path as the user gave it.
    let path: String
    private let folder: OpenDescriptor
    /// The numbers that are tried for a name that is taken.
    private static let numbers = 1...999

    /// Opens the folder. Throws if `path` is no folder, or if it cannot be written to.
    init(_ path: String) throws(FileFailure) {
        self.path = path
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system("files cannot be written to \(path)") }
        folder = OpenDescriptor(descriptor)
        guard faccessat(descriptor, ".", W_OK | X_OK, 0) == 0 else {
            throw .system("files cannot be written to \(path)")
        }
    }

    /// Returns the path of the file with that name.
    func path(of name: String) -> String {
        path == "." ? name : path.hasSuffix("/") ? "\(path)\(name)" : "\(path)/\(name)"
    }

    /// The number of free bytes; nil if the file system does not say.
    var room: Int? {
        var about = statvfs()
        guard fstatvfs(folder.number, &about) == 0, about.f_frsize > 0 else { return nil }
        let (bytes, isTooMany) = Int(clamping: about.f_bavail).multipliedReportingOverflow(
            by: Int(clamping: about.f_frsize))
        return isTooMany ? .max : bytes
    }

    /// Returns whether anything has that name.
    func has(_ name: String) -> Bool {
        var about = stat()
        return fstatat(folder.number, name, &about, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// Returns whether a file may replace what has that name: a plain file, a link or nothing, but no device, pipe or
    /// folder.
    private func isReplaceable(_ name: String) -> Bool {
        var about = stat()
        guard fstatat(folder.number, name, &about, AT_SYMLINK_NOFOLLOW) == 0 else { return true }
        return about.st_mode & S_IFMT == S_IFREG || about.st_mode & S_IFMT == S_IFLNK
    }

    /// Returns whether that name leads to the open file, and not to something else that was put there.
    func leads(_ name: String, to file: OpenDescriptor) -> Bool {
        var named = stat()
        var opened = stat()
        return fstatat(folder.number, name, &named, AT_SYMLINK_NOFOLLOW) == 0
            && fstat(file.number, &opened) == 0 && named.st_dev == opened.st_dev
            && named.st_ino == opened.st_ino
    }

    /// Whether the path still leads to the open folder.
    var isInPlace: Bool {
        var named = stat()
        var opened = stat()
        return stat(path, &named) == 0 && fstat(folder.number, &opened) == 0
            && named.st_dev == opened.st_dev && named.st_ino == opened.st_ino
    }

    // MARK: Parts

    /// Returns the part of a file that `sender` offers: what an earlier program left of it, or a new part under the
    /// first number whose name is free. With `replacing`, a name is also free if its file may be replaced.
    func part(_ name: SafeFileName, size: Int?, from sender: PeerID, replacing: Bool) throws(FileFailure)
        -> PartFile
    {
        let note = PartNote(sender: sender, name: name.text, size: size)
        for number in Self.numbers {
            let candidate = name.numbered(number)
            guard has(note, of: candidate), let file = openPart(candidate) else { continue }
            return PartFile(file, candidate, note, in: self, replacing: replacing)
        }
        for number in Self.numbers {
            let candidate = name.numbered(number)
            let isTaken = replacing ? !isReplaceable(candidate.text) : has(candidate.text)
            guard !isTaken, !has(candidate.part), !has(candidate.note) else { continue }
            guard try write(note.text, to: candidate.note) else { continue }
            guard let file = openPart(candidate, O_EXCL) else {
                let failure = FileFailure.system("creating \(path(of: candidate.part))")
                remove(candidate.note)
                throw failure
            }
            return PartFile(file, candidate, note, in: self, replacing: replacing)
        }
        throw FileFailure("\(path(of: name.text)) and all its numbered names exist")
    }

    /// Opens the data of a part, new or left from before. Returns nil if something else has its name, or if another
    /// program writes to it.
    private func openPart(_ name: SafeFileName, _ extraFlags: Int32 = 0) -> OpenDescriptor? {
        let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | extraFlags
        let number = openat(folder.number, name.part, flags, 0o644)
        guard number >= 0 else { return nil }
        let descriptor = OpenDescriptor(number)
        var about = stat()
        guard fstat(number, &about) == 0, about.st_mode & S_IFMT == S_IFREG, about.st_nlink == 1,
            about.st_uid == geteuid(), flock(number, LOCK_EX | LOCK_NB) == 0
        else { return nil }
        return descriptor
    }

    /// Returns whether this is the note beside the part of that name.
    func has(_ note: PartNote, of name: SafeFileName) -> Bool { read(name.note) == note.text }

    /// Gives an open part its name, or the first numbered name that is free. Returns that name. It is the
    /// open file that gets the name, and not something else that was put in its place.
    func keep(_ file: OpenDescriptor, as name: SafeFileName, replacing: Bool) throws(FileFailure)
        -> SafeFileName
    {
        guard isInPlace else {
            throw FileFailure(
                "\(path) was moved or removed during the transfer; send it again to a folder that stays",
                other: "the folder for it was moved or removed there")
        }
        for number in Self.numbers {
            let candidate = name.numbered(number)
            if replacing {
                guard isReplaceable(candidate.text) else { continue }
                try move(file, from: name, to: candidate.text)
                return candidate
            }
            if link(file, to: candidate.text) { return candidate }
            switch errno {
            case EEXIST: continue
            // The file system has no hard links, or `/proc` is not there: checking a name and giving it cannot be one
            // step.
            case EPERM, EOPNOTSUPP, ENOENT:
                guard !has(candidate.text) else { continue }
                try move(file, from: name, to: candidate.text)
                return candidate
            default: throw .system("creating \(path(of: candidate.text))")
            }
        }
        throw FileFailure("\(path(of: name.text)) and all its numbered names exist")
    }

    private func link(_ file: OpenDescriptor, to name: String) -> Bool {
        linkat(AT_FDCWD, "/proc/self/fd/\(file.number)", folder.number, name, AT_SYMLINK_FOLLOW) == 0
    }

    /// Renames the part, and checks before and after that the name leads to that file.
    private func move(_ file: OpenDescriptor, from name: SafeFileName, to final: String) throws(FileFailure) {
        guard leads(name.part, to: file) else { throw lost(name.part) }
        guard renameat(folder.number, name.part, folder.number, final) == 0 else {
            throw .system("creating \(path(of: final))")
        }
        guard leads(final, to: file) else { throw lost(final) }
    }

    private func lost(_ name: String) -> FileFailure {
        FileFailure(
            "\(path(of: name)) was removed or replaced during the transfer; send it again",
            other: "it was removed or replaced there during the transfer")
    }

    // MARK: Small files

    private static let longestNote = 4_096

    private func read(_ name: String) -> String? {
        let number = openat(folder.number, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard number >= 0 else { return nil }
        let descriptor = OpenDescriptor(number)
        var about = stat()
        guard fstat(number, &about) == 0, about.st_uid == geteuid() else { return nil }
        var bytes = [UInt8](repeating: 0, count: Self.longestNote)
        let count = bytes.withUnsafeMutableBytes { descriptor.read(into: $0, at: 0) }
        return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
    }

    /// Creates a file with that name and text. Returns false if there is one already.
    private func write(_ text: String, to name: String) throws(FileFailure) -> Bool {
        let number = openat(
            folder.number, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
        guard number >= 0 else {
            if errno == EEXIST { return false }
            throw .system("creating \(path(of: name))")
        }
        let descriptor = OpenDescriptor(number)
        let isWritten = Array(text.utf8).withUnsafeBytes { descriptor.write($0) }
        guard isWritten else {
            let failure = FileFailure.system("writing \(path(of: name))")
            remove(name)
            throw failure
        }
        return true
    }

    func remove(_ name: String) { unlinkat(folder.number, name, 0) }

    /// Flushes the folder's names to the disk.
    func sync() { fsync(folder.number) }
}

/// The content of `NAME.part.nigh`, which says whose part it is.
struct PartNote {
    let sender: PeerID
    let name: String
    let size: Int?

    var text: String {
        """
        nigh receive: what NAME.part beside this belongs to. Sent again, the file goes on from there; both can be removed.
        sender \(sender)
        size \(size.map(String.init) ?? "unknown")
        name \(name)

        """
    }
}
