import Glibc
import NighCore

/// Why another user could put something else in the place of a file: a folder on the way to the file belongs to that
/// user, or others may write to it.
///
/// A user who may write to a folder can rename its entries. So every folder from the root on counts, and so does every
/// folder on the way of a symbolic link. In a folder with the sticky bit, such as `/tmp`, only the owner of an entry
/// can rename that entry. The file itself is not examined: its reader decides which owner and mode it may have.
///
/// A group that may write counts as other users, with one exception. Many systems give each user a group of the same
/// number, in which nobody else is, and let it write to the user's files.
package struct PathExposure: Hashable, Sendable {
    package enum Reason: Hashable, Sendable {
        /// The place belongs to this user, who is neither the program's own user nor root.
        case foreign(uid_t)
        /// Other users may write to the folder, which has this mode, and may rename its entries.
        case writable(mode_t)
        /// The file system does not say who may write to the folder.
        case unknown
    }

    /// The path of the folder, or of a symbolic link in a folder that everybody may write to.
    package let place: String
    package let reason: Reason
    /// Whether the file, or a symbolic link to it, is in this folder itself.
    private let holdsFile: Bool

    /// The owner, group, mode and target that the file system gives for a name.
    struct Entry: Hashable {
        var owner: uid_t
        /// The group that the mode applies to; nil if that is unknown.
        var group: gid_t?
        var mode: mode_t
        /// Where a symbolic link leads; nil for everything else.
        var target: String?

        func isWritableByOthers(than user: uid_t) -> Bool {
            mode & 0o002 != 0 || mode & 0o020 != 0 && group != user && group != 0
        }
    }

    private static let mostLinks = 40

    /// Examines the way to the file at `path`, which need not exist. Returns nil if no other user could replace it.
    package init?(ofFileAt path: String) {
        var absolute = path
        if path.utf8.first != UInt8(ascii: "/") {
            let folder = getcwd(nil, 0)
            defer { free(folder) }
            absolute = "\(folder.map { String(cString: $0) } ?? "")/\(path)"
        }
        self.init(ofFileAt: absolute, user: geteuid(), entry: Self.entry)
    }

    /// Examines an absolute path for a program of this user. `entry` returns nil for a name that does not exist.
    init?(ofFileAt path: String, user: uid_t, entry: (String) -> Entry?) {
        // In a sandbox that knows no other user, files of root seem to belong to nobody. Whoever owns the root folder
        // can replace everything anyway.
        let rootOwner = entry("/")?.owner
        var rest = Self.names(in: path)
        var folder: [String] = []
        var links = 0
        while let name = rest.popLast() {
            guard name != "." else { continue }
            guard name != ".." else {
                _ = folder.popLast()
                continue
            }
            let (holder, place) = (Self.path(of: folder), Self.path(of: folder + [name]))
            let holdsFile = rest.isEmpty
            func exposed(_ place: String, _ reason: Reason) -> Self {
                Self(place: place, reason: reason, holdsFile: holdsFile)
            }
            guard let status = entry(holder) else {
                self = exposed(holder, .unknown)
                return
            }
            guard [0, user].contains(status.owner) || !holdsFile && status.owner == rootOwner else {
                self = exposed(holder, .foreign(status.owner))
                return
            }
            let next = entry(place)
            if status.isWritableByOthers(than: user) {
                guard status.mode & S_ISVTX != 0 else {
                    self = exposed(holder, .writable(status.mode & 0o7777))
                    return
                }
                if let next, ![0, user].contains(next.owner) {
                    self = exposed(place, .foreign(next.owner))
                    return
                }
            }
            guard let next else {
                if holdsFile { return nil }
                self = exposed(place, .unknown)
                return
            }
            if let target = next.target {
                links += 1
                guard links <= Self.mostLinks else {
                    self = exposed(place, .unknown)
                    return
                }
                rest += Self.names(in: target)
                if target.utf8.first == UInt8(ascii: "/") { folder = [] }
            } else {
                folder.append(name)
            }
        }
        return nil
    }

    private init(place: String, reason: Reason, holdsFile: Bool) {
        self.place = place
        self.reason = reason
        self.holdsFile = holdsFile
    }

    /// The names in a path, the last one first.
    private static func names(in path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).reversed().map { String(decoding: $0, as: UTF8.self) }
    }

    private static func path(of names: [String]) -> String { "/" + names.joined(separator: "/") }

    private static func entry(_ path: String) -> Entry? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        var entry = Entry(owner: status.st_uid, group: status.st_gid, mode: status.st_mode)
        guard status.st_mode & S_IFMT == S_IFLNK else { return entry }
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path, &target, target.count)
        guard count >= 0 else { return nil }
        entry.target = String(decoding: target.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
        return entry
    }

    // MARK: Errors

    /// The problem, as the part of a sentence that comes after the name of the file.
    package var sentence: String {
        switch reason {
        case .foreign(let user):
            "\(holdsFile ? "its folder" : "\(place), where it is,") belongs to user \(user), who could replace it"
        case .writable(let mode):
            "others may write \(holdsFile ? "its folder" : "\(place), where it is") (mode \(String(mode, radix: 8)))"
        case .unknown: "nobody can tell who may write to \(place)"
        }
    }

    /// How to close the folder; nil if that is not for this user to do.
    package var advice: String? {
        if case .writable = reason { return "`chmod go-w \(ShellWord.quoted(place))`" }
        return nil
    }
}
