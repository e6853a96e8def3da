import Glibc
import NighCore

extension ProtectedFile {
    /// Identifies a version of the file's content without reading it.
    enum Stamp: Hashable, Sendable {
        case noFile
        case file(device: UInt, inode: UInt, byteCount: Int, modified: FileTime, changed: FileTime)
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
        return .file(
            device: UInt(status.st_dev), inode: UInt(status.st_ino), byteCount: Int(status.st_size),
            modified: FileTime(status.st_mtim), changed: FileTime(status.st_ctim))
    }

    /// A time as the file system has it, which may be centuries away.
    struct FileTime: Hashable, Sendable {
        private let seconds: Int
        private let nanoseconds: Int

        fileprivate init(_ time: timespec) {
            seconds = time.tv_sec
            nanoseconds = time.tv_nsec
        }
    }
}
