import Glibc
import NighCore
import NighSystem

/// Reads lines of the standard input, on a thread of its own.
///
/// `@unchecked Sendable`: no property changes after the initialisation.
public final class TypedLines: @unchecked Sendable {
    private let thread = LoopThread()
    private let stopPipe: (read: Int32, write: Int32)

    /// The most bytes of a line. Nobody types that much; a longer line is dropped.
    private static let longest = 64 << 10

    /// Throws if there are no descriptors left.
    public init() throws(NighError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw NighError(.starting, .system(errno, String(cString: strerror(errno))))
        }
        stopPipe = (ends[0], ends[1])
    }

    deinit {
        close(stopPipe.read)
        close(stopPipe.write)
    }

    /// Calls `typed` on the thread for each line, without its line end, and finally with nil at the end of the input.
    public func start(_ typed: @escaping @Sendable (String?) -> Void) throws {
        try thread.start { [self] in read(typed) }
    }

    /// Stops reading, and returns when `typed` is no longer called. `typed` itself must not call this.
    public func stop() {
        _ = write(stopPipe.write, [0], 1)
        thread.join()
    }

    private func read(_ typed: (String?) -> Void) {
        var unread: [UInt8] = []
        /// Whether the beginning of the present line was dropped.
        var isTooLong = false
        while let bytes = nextBytes() {
            guard !bytes.isEmpty else {
                if !unread.isEmpty, !isTooLong { typed(String(decoding: unread, as: UTF8.self)) }
                return typed(nil)
            }
            unread += bytes
            while let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                if !isTooLong { typed(String(decoding: unread[..<end], as: UTF8.self)) }
                isTooLong = false
                unread.removeFirst(end + 1)
            }
            if unread.count > Self.longest { (unread, isTooLong) = ([], true) }
        }
    }

    /// Returns the next bytes, which are empty at the end of the input, or nil if reading has to stop.
    private func nextBytes() -> [UInt8]? {
        var watched = [
            pollfd(fd: stopPipe.read, events: Int16(POLLIN), revents: 0),
            pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            guard poll(&watched, 2, -1) >= 0 || errno == EINTR else { return nil }
            if watched[0].revents != 0 { return nil }
            guard watched[1].revents != 0 else { continue }
            var bytes = [UInt8](repeating: 0, count: 4_096)
            let count = Glibc.read(STDIN_FILENO, &bytes, bytes.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            return Array(bytes.prefix(max(count, 0)))
        }
    }
}
