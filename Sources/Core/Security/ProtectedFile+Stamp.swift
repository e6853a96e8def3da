import Glibc

extension ProtectedFile {
    /// Identifies a version of the file's content without reading it.
    enum Stamp: Hashable, Sendable {
        case noFile
        case file(
            device: UInt, inode: UInt, byteCount: Int, modified: Moment, changed: Moment)
        /// The file system does not report it, for this reason.
        case unknown(errno: Int32)
    }

    /// The stamp of the file that is at the path now.
    ///
    /// If the file changes twice within one tick of the file system's clock, the stamp can stay the same. So compare
    /// stamps twice, further apart than one tick, before you read the file.
    var stamp: Stamp {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            return errno == ENOENT ? .noFile : .unknown(errno: errno)
        }
        func moment(_ time: timespec) -> Moment {
            Moment(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
        }
        return .file(
            device: UInt(status.st_dev), inode: UInt(status.st_ino), byteCount: Int(status.st_size),
            modified: moment(status.st_mtim), changed: moment(status.st_ctim))
    }
}
