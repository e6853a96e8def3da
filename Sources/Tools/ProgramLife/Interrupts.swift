import Glibc
import NighCore

/// Ctrl-C and its relatives: the first asks the program to leave in good order, the second ends it at once.
public enum Interrupts {
    /// `@unchecked Sendable`: what changes is guarded by the lock.
    private final class State: @unchecked Sendable {
        let lock = Lock()
        var hasCome = false
        var leave: (@Sendable () -> Void)?
    }

    private static let state = State()

    /// Keeps the signals for `wait`. To be called before any other thread is made.
    public static func block() {
        var signals = chosen
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Calls `leave` when the first comes; at once if it has.
    public static func onFirst(_ leave: @escaping @Sendable () -> Void) {
        let hasCome = state.lock.withLock {
            state.leave = leave
            return state.hasCome
        }
        if hasCome { leave() }
    }

    /// Waits for signals on the main thread, for the rest of the program's life. It must not do anything else: an `await` there
    /// would have the runtime let signals through.
    public static func wait() -> Never {
        takeOne()
        let leave = state.lock.withLock {
            state.hasCome = true
            return state.leave
        }
        leave?()
        takeOne()
        _exit(130)
    }

    private static func takeOne() {
        var signals = chosen
        var signal: Int32 = 0
        while sigwait(&signals, &signal) != 0 {}
    }

    private static var chosen: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&signals, signal) }
        return signals
    }
}
