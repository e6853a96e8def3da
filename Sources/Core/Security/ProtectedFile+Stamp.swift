import Glibc

extension ProtectedFile {
    /// Tells one content of the file from another without reading it.
    enum Stamp: Hashable, Sendable {
        case noFile
        case file(
            device: UInt, inode: UInt, byteCount: Int, modified: Moment, changed: Moment)
        /// The file system does not say, for this reason.
        case unknown(errno: Int32)
    }

    /// The stamp of what is at the path now.
    ///
    /// A change that follows another within one tick of the file system's clock can leave the stamp as it was. So whoever compares stamps
    /// should look twice, further apart than that, before it reads.
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
