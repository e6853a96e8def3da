import Glibc
import NighCore

/// Handles Ctrl-C and similar signals: the first asks the program to leave in good order, the second ends it at once.
public enum Interrupts {
    /// `@unchecked Sendable`: the variables are guarded by the lock.
    private final class State: @unchecked Sendable {
        let lock = Lock()
        var wasInterrupted = false
        var leave: (@Sendable () -> Void)?
    }

    private static let state = State()

    /// Blocks the signals, so that `wait` gets them. Call this before any other thread exists.
    public static func block() {
        var signals = handledSignals
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    /// Calls `leave` when the first signal comes, or at once if it has come already.
    public static func onFirst(_ leave: @escaping @Sendable () -> Void) {
        let wasInterrupted = state.lock.withLock {
            state.leave = leave
            return state.wasInterrupted
        }
        if wasInterrupted { leave() }
    }

    /// Waits for signals on the main thread, for the rest of the program's life.
    ///
    /// The main thread must not do anything else: with an `await` there, the runtime would let signals through.
    public static func wait() -> Never {
        waitForSignal()
        let leave = state.lock.withLock {
            state.wasInterrupted = true
            return state.leave
        }
        leave?()
        waitForSignal()
        _exit(130)
    }

    private static func waitForSignal() {
        var signals = handledSignals
        var signal: Int32 = 0
        while sigwait(&signals, &signal) != 0 {}
    }

    private static var handledSignals: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&signals, signal) }
        return signals
    }
}
