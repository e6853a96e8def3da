import Glibc

/// The error that a file could not be read, written or transferred, in one sentence.
struct FileFailure: Error, CustomStringConvertible {
    let description: String
    /// The reason to send to the other side.
    let stop: FileStop

    init(_ description: String, _ reason: FileStop.Reason = .fileTrouble, other explanation: String? = nil) {
        self.description = description
        stop = FileStop(reason, explanation ?? "the file cannot be read or written there")
    }

    /// Creates the failure for an error number of the operating system.
    static func system(_ what: String, _ number: Int32 = errno) -> FileFailure {
        let reason = String(cString: strerror(number))
        switch number {
        case ENOSPC, EDQUOT:
            return FileFailure("\(what): \(reason)", .noSpace, other: "no space is left")
        case EFBIG:
            return FileFailure(
                "\(what): \(reason)", .noSpace, other: "files may not grow that large there")
        default: return FileFailure("\(what): \(reason)")
        }
    }
}

/// A file descriptor of this process, which is closed with its last reference.
final class OpenDescriptor: Sendable {
    let number: Int32

    init(_ number: Int32) { self.number = number }

    deinit { close(number) }

    /// Reads at `offset` into `bytes`. Returns the number of bytes read, 0 at the end, or -1 with the reason in
    /// `errno`.
    func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
        while true {
            let count = pread(number, bytes.baseAddress, bytes.count, offset)
            if count >= 0 || errno != EINTR { return count }
        }
    }

    /// Reads the next bytes into `bytes`. Returns the number of bytes read, 0 at the end, or -1 with the reason in
    /// `errno`.
    func readNext(into bytes: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            let count = Glibc.read(number, bytes.baseAddress, bytes.count)
            if count >= 0 || errno != EINTR { return count }
        }
    }

    /// Writes all of `bytes` at the descriptor's current position. Returns false if that fails, with the reason in
    /// `errno`.
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
