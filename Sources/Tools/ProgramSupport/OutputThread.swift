import NighCore
import NighSystem

/// Writes to the standard output and the standard error on a thread of its own, in the order of the calls.
///
/// A terminal may be stopped and a reader slow, and many callers are event loops, which must not wait for them. So a
/// caller waits only while more than `limit` bytes are not written yet.
///
/// `@unchecked Sendable`: the lock guards all mutable state.
final class OutputThread: @unchecked Sendable {
    /// The one thread of this program.
    static let shared = OutputThread()

    /// The number of bytes that may wait.
    private static let limit = 1 << 20
    /// The number of bytes from which on the reader counts as slow.
    private static let slowFrom = 64 << 10

    private let lock = Lock()
    private let changed = Condition()
    private let thread = LoopThread()
    private var isRunning = false
    private var waiting: [(byteCount: Int, write: @Sendable () -> Void)] = []
    /// The bytes that were passed to `write`, and those that were written, since the beginning.
    private var (passed, written) = (0, 0)

    private init() {}

    /// Starts the thread. Until then, and if the system has no thread to give, everything is written at once.
    func start() {
        lock.withLock {
            guard !isRunning else { return }
            isRunning = (try? thread.start { [self] in run() }) != nil
        }
    }

    /// Calls `write`, which writes `byteCount` bytes, after everything before it.
    func write(_ byteCount: Int, _ write: @escaping @Sendable () -> Void) {
        let isQueued = lock.withLock {
            guard isRunning else { return false }
            // A call from the thread itself must not wait for it.
            while passed - written > Self.limit, !thread.isCurrent { changed.wait(with: lock) }
            waiting.append((byteCount, write))
            passed += byteCount
            changed.notify()
            return true
        }
        if !isQueued { write() }
    }

    /// Waits until everything is written that was passed before.
    func flush() {
        lock.withLock {
            let end = passed
            while written < end, !thread.isCurrent { changed.wait(with: lock) }
        }
    }

    /// Whether so much waits that the reader is slow, or does not read.
    var isBehind: Bool { lock.withLock { passed - written > Self.slowFrom } }

    private func run() {
        while true {
            let batch = lock.withLock {
                while waiting.isEmpty { changed.wait(with: lock) }
                defer { waiting = [] }
                return waiting
            }
            for entry in batch {
                entry.write()
                lock.withLock {
                    written += entry.byteCount
                    changed.notify()
                }
            }
        }
    }
}
