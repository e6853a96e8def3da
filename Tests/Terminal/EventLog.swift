import Glibc
import NighCore
import Terminal

/// Collects what a session reports, for tests that wait for it.
///
/// `@unchecked Sendable`: the lock guards the events; the descriptors never change.
final class EventLog: @unchecked Sendable {
    private let lock = Lock()
    private var events: [TerminalEvent] = []
    private let told: Int32
    private let telling: Int32

    private static let patience: Int32 = 30_000

    init() {
        var ends: [Int32] = [-1, -1]
        pipe(&ends)
        (told, telling) = (ends[0], ends[1])
    }

    deinit {
        close(told)
        close(telling)
    }

    func append(_ event: TerminalEvent) {
        lock.withLock { events.append(event) }
        _ = write(telling, "e", 1)
    }

    var all: [TerminalEvent] { lock.withLock { events } }

    /// Waits until there are `count` events; returns all events, or fewer than `count` after a timeout.
    func await(_ count: Int) -> [TerminalEvent] {
        while all.count < count {
            var watched = pollfd(fd: told, events: Int16(POLLIN), revents: 0)
            guard poll(&watched, 1, Self.patience) == 1 else { break }
            var byte: UInt8 = 0
            read(told, &byte, 1)
        }
        return all
    }
}
