import Glibc

/// Why somebody else could put another file in the place of one in a folder.
package enum FolderExposure: Hashable, Sendable {
    /// The folder belongs to that user, who is neither this program's nor root.
    case foreign(uid_t)
    /// Others may write it, with this mode, and remove what is not theirs.
    case writable(mode_t)

    /// What is wrong with a folder; nil for one where nobody else could.
    package init?(_ status: stat) {
        if status.st_uid != geteuid() && status.st_uid != 0 {
            self = .foreign(status.st_uid)
        } else if status.st_mode & 0o022 != 0 && status.st_mode & S_ISVTX == 0 {
            self = .writable(status.st_mode & 0o7777)
        } else {
            return nil
        }
    }
}
