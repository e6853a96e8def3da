import Glibc

/// A file descriptor of this process, which is closed with its last reference.
package final class OpenDescriptor: Sendable {
    package let number: Int32

    package init(_ number: Int32) { self.number = number }

    deinit { close(number) }

    /// The status of the file; nil if the file system reports none.
    package var status: stat? {
        var status = stat()
        return fstat(number, &status) == 0 ? status : nil
    }

    /// Reads at `offset` into `bytes`. Returns the number of bytes read, 0 at the end, or -1 with the reason in
    /// `errno`.
    package func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
        while true {
            let count = pread(number, bytes.baseAddress, bytes.count, offset)
            if count >= 0 || errno != EINTR { return count }
        }
    }

    /// Reads at `offset` until `bytes` is full or the file ends. Returns the number of bytes read, or -1 with the
    /// reason in `errno`.
    package func fill(_ bytes: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
        var count = 0
        while count < bytes.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[count...])
            let next = read(into: rest, at: offset + count)
            guard next >= 0 else { return next }
            guard next > 0 else { break }
            count += next
        }
        return count
    }

    /// The content of the file; nil if it cannot be read, with the reason in `errno`.
    package var content: [UInt8]? {
        guard let status else { return nil }
        var isRead = false
        let content = [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { bytes, count in
            let filled = fill(UnsafeMutableRawBufferPointer(bytes), at: 0)
            (isRead, count) = (filled >= 0, max(0, filled))
        }
        return isRead ? content : nil
    }

    /// Reads the next bytes into `bytes`. Returns the number of bytes read, 0 at the end, or -1 with the reason in
    /// `errno`.
    package func readNext(into bytes: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            let count = Glibc.read(number, bytes.baseAddress, bytes.count)
            if count >= 0 || errno != EINTR { return count }
        }
    }

    /// Writes all of `bytes` at the descriptor's current position. Returns false if that fails, with the reason in
    /// `errno`.
    package func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        writeAll(bytes) { rest, _ in Glibc.write(number, rest.baseAddress, rest.count) }
    }

    /// Writes as many of `bytes` as there is room for. Returns how many, or -1 with the reason in `errno`.
    package func writeNext(_ bytes: UnsafeRawBufferPointer) -> Int {
        while true {
            let count = Glibc.write(number, bytes.baseAddress, bytes.count)
            if count >= 0 || errno != EINTR { return count }
        }
    }

    /// Writes all of `bytes` at `offset`. Returns false if that fails, with the reason in `errno`.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Bool {
        writeAll(bytes) { rest, done in pwrite(number, rest.baseAddress, rest.count, offset + done) }
    }

    private func writeAll(
        _ bytes: UnsafeRawBufferPointer, _ write: (_ rest: UnsafeRawBufferPointer, _ done: Int) -> Int
    ) -> Bool {
        var done = 0
        while done < bytes.count {
            let count = write(UnsafeRawBufferPointer(rebasing: bytes[done...]), done)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }
}

extension stat {
    /// The kind of the file: one of `S_IFREG`, `S_IFDIR` and so on.
    package var kind: mode_t { st_mode & S_IFMT }

    /// When the content last changed, in nanoseconds since 1970; nil if that does not fit.
    package var modified: Int? {
        let (seconds, isTooLarge) = st_mtim.tv_sec.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, isLater) = seconds.addingReportingOverflow(st_mtim.tv_nsec)
        return isTooLarge || isLater ? nil : sum
    }

    /// Returns whether this is the same file as another.
    package func isSameFile(as other: stat) -> Bool { st_dev == other.st_dev && st_ino == other.st_ino }

    /// Returns whether size and time of change are the same as those of another.
    package func isUnchanged(since other: stat) -> Bool {
        st_size == other.st_size && st_mtim.tv_sec == other.st_mtim.tv_sec
            && st_mtim.tv_nsec == other.st_mtim.tv_nsec
    }
}
