import Glibc
import NighCore
import NighRecord

/// Where a record is read from: a file, the standard input, or a pipe that a running session's recorder writes to. It may block, so it is
/// for a command's own thread; it looks at whether the command is to end at least every tenth of a second.
final class RecordSource {
    /// What the record says and is; to be looked at between reads.
    private(set) var reader = RecordReader()
    private let descriptor: Int32
    private let follows: Bool
    private let isRequestedToEnd: () -> Bool

    private static let readByteCount = 1 << 18
    private static let patience: Int32 = 100

    /// Opens a file, or takes the standard input for `-`.
    ///
    /// - Parameters:
    ///   - follows: at the end waits for more.
    ///   - isRequestedToEnd: whether to stop before the end.
    convenience init(
        path: String, follows: Bool, isRequestedToEnd: @escaping () -> Bool
    ) throws(NighError) {
        // Not blocking, or a pipe into which nobody writes would hold up the end that was asked for.
        let descriptor =
            path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            let number = errno
            throw NighError(
                .configuring, .system(number, "reading \(path): \(String(cString: strerror(number)))"),
                advice: "a record is made by --record FILE of nigh and fourinarow")
        }
        self.init(descriptor: descriptor, follows: follows, isRequestedToEnd: isRequestedToEnd)
    }

    /// Reads what is open already, and closes it in the end.
    init(descriptor: Int32, follows: Bool, isRequestedToEnd: @escaping () -> Bool) {
        self.descriptor = descriptor
        self.follows = follows
        self.isRequestedToEnd = isRequestedToEnd
    }

    deinit { close(descriptor) }

    /// The next entry; nil at the end. Throws where what comes is no record, or one no longer.
    func next() throws -> RecordEntry? {
        while true {
            if let entry = try reader.next() { return entry }
            guard try readMore() else { return nil }
        }
    }

    private func readMore() throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: Self.readByteCount)
        while !isRequestedToEnd() {
            var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&waited, 1, Self.patience) > 0 else { continue }
            let count = read(descriptor, &buffer, buffer.count)
            if count > 0 {
                reader.feed(buffer[..<count])
                return true
            }
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count == 0 else {
                let number = errno
                throw NighError(
                    .configuring, .system(number, "reading the record: \(String(cString: strerror(number)))"))
            }
            guard follows else { return false }
            // A file always has something to read, if only its end.
            poll(nil, 0, Self.patience)
        }
        return false
    }
}
