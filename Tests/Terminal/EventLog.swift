import Glibc
import NighCore
import Terminal

/// Collects what a session reports, for tests that wait for it.
///
/// `@unchecked Sendable`: the lock guards the events; the descriptors never change.
final class EventLog: @unchecked Sendable {
    private let lock = Lock()
    private var events: [TerminalEvent] = []
    private let readEnd: Int32
    private let writeEnd: Int32

    private static let timeout: Int32 = 300_000

    init() {
        var ends: [Int32] = [-1, -1]
        pipe(&ends)
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    func append(_ event: TerminalEvent) {
        lock.withLock { events.append(event) }
        _ = write(writeEnd, "e", 1)
    }

    var all: [TerminalEvent] { lock.withLock { events } }

    /// Waits until there are `count` events; returns all events, or fewer than `count` after a timeout.
    func await(_ count: Int) -> [TerminalEvent] {
        while all.count < count {
            var watched = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
            guard poll(&watched, 1, Self.timeout) == 1 else { break }
            var byte: UInt8 = 0
            read(readEnd, &byte, 1)
        }
        return all
    }
}
