import Glibc

/// A file could not be read or written, in one sentence.
struct FileFailure: Error, CustomStringConvertible {
    let description: String
    /// What the other side is told.
    let stop: FileStop

    init(_ description: String, _ reason: FileStop.Reason = .fileTrouble, other words: String? = nil) {
        self.description = description
        stop = FileStop(reason, words ?? "the file cannot be read or written there")
    }

    /// The operating system said so.
    static func system(_ what: String, _ number: Int32 = errno) -> FileFailure {
        let words = String(cString: strerror(number))
        switch number {
        case ENOSPC, EDQUOT:
            return FileFailure("\(what): \(words)", .noSpace, other: "there is no room for it any more")
        case EFBIG:
            return FileFailure(
                "\(what): \(words)", .noSpace, other: "files may not grow that large there")
        default: return FileFailure("\(what): \(words)")
        }
    }
}

/// A descriptor of this process, closed with its last reference.
final class OpenDescriptor: Sendable {
    let number: Int32

    init(_ number: Int32) { self.number = number }

    deinit { close(number) }

    /// Reads at `offset` into `bytes`; how many, 0 at the end.
    func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
        while true {
            let count = pread(number, bytes.baseAddress, bytes.count, offset)
            if count >= 0 || errno != EINTR { return count }
        }
    }

    /// Reads what comes next into `bytes`; how many, 0 at the end.
    func readNext(into bytes: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            let count = Glibc.read(number, bytes.baseAddress, bytes.count)
            if count >= 0 || errno != EINTR { return count }
        }
    }

    /// Writes all of `bytes` where the descriptor stands; false where that fails, as `errno` says.
    func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest)
            let count = Glibc.write(number, part.baseAddress, part.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
