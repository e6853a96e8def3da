import Dispatch
import Glibc
import NighCore

/// Waits on a thread of its own until there is something to read in a pipe. Dispatch's own sources for that crash now
/// and then when one is cancelled while its event comes.
final class InputWatch: Sendable {
    /// A byte that is written here ends the wait, and so does the end of this object.
    private let stop: OpenDescriptor?

    /// The longest time between two looks at the pipe if there is no descriptor left to end the wait with, in
    /// milliseconds.
    private static let shortest: Int32 = 100

    /// Calls `body` when there is something to read, or when the time is over, unless `cancel` was called before.
    init(_ input: AwaitedInput, _ body: @escaping @Sendable () -> Void) {
        var ends: [Int32] = [-1, -1]
        let hasEnds =
            socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0
        let stopped = hasEnds ? OpenDescriptor(ends[0]) : nil
        stop = hasEnds ? OpenDescriptor(ends[1]) : nil
        let time = input.timeout.map { Int32(clamping: Moment.Span($0).nanoseconds / 1_000_000 + 1) } ?? -1
        DispatchQueue(label: "input watch").async {
            var wanted = [
                pollfd(fd: input.file.number, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stopped?.number ?? -1, events: Int16(POLLIN), revents: 0),
            ]
            let limit = stopped == nil ? (time < 0 ? Self.shortest : min(time, Self.shortest)) : time
            while poll(&wanted, nfds_t(wanted.count), limit) < 0, errno == EINTR {}
            if wanted[1].revents == 0 { body() }
        }
    }

    /// Ends the wait.
    func cancel() {
        guard let stop else { return }
        var byte: UInt8 = 0
        _ = write(stop.number, &byte, 1)
    }
}
