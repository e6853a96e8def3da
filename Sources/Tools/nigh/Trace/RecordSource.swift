import Glibc
import NighCore
import NighRecord

/// The source of a record: a file, the standard input, or a socket that a running session's recorder writes to. Reading
/// may block, so it is done on a command's own thread. It checks at least every tenth of a second whether the command
/// should end.
final class RecordSource {
    /// The reader, which knows the kind of record. It may be looked at between reads.
    private(set) var reader = RecordReader()
    private let descriptor: Int32
    private let follows: Bool
    private let isRequestedToEnd: () -> Bool

    private static let readByteCount = 1 << 18
    private static let pollTimeout: Int32 = 100

    /// Opens a file, or the standard input for `-`.
    ///
    /// - Parameters:
    ///   - follows: waits for more at the end.
    ///   - isRequestedToEnd: whether to stop before the end.
    convenience init(
        path: String, follows: Bool, isRequestedToEnd: @escaping () -> Bool
    ) throws(NighError) {
        // Do not block: a pipe that nobody writes to would hold up the end of the command.
        let descriptor =
            path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            let number = errno
            throw NighError(
                .configuring, .system(number, "reading \(path): \(String(cString: strerror(number)))"),
                advice: "--record FILE of nigh and fourinarow writes a record")
        }
        self.init(descriptor: descriptor, follows: follows, isRequestedToEnd: isRequestedToEnd)
    }

    /// Reads from a descriptor that is open already, and closes it in the end.
    init(descriptor: Int32, follows: Bool, isRequestedToEnd: @escaping () -> Bool) {
        self.descriptor = descriptor
        self.follows = follows
        self.isRequestedToEnd = isRequestedToEnd
    }

    deinit { close(descriptor) }

    /// Returns the next entry; nil at the end. Throws if the bytes are no record, or are no record from some point on.
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
            guard poll(&waited, 1, Self.pollTimeout) > 0 else { continue }
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
            // `poll` always reports a file as readable, even at its end.
            poll(nil, 0, Self.pollTimeout)
        }
        return false
    }
}
