import Glibc

/// Why another user could replace a file in a folder.
package enum FolderExposure: Hashable, Sendable {
    /// The folder belongs to this user, who is neither the program's own user nor root.
    case foreign(uid_t)
    /// Other users may write to the folder, which has this mode, and may remove files of others.
    case writable(mode_t)

    /// Examines a folder's status. Returns nil if no other user could replace its files.
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
