import Glibc
import NighCore

/// Handles Ctrl-C and similar signals: the first asks the program to leave in good order, the second ends it at once.
public enum TerminationSignals {
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
        _ = waitForSignal()
        let leave = state.lock.withLock {
            state.wasInterrupted = true
            return state.leave
        }
        leave?()
        let second = waitForSignal()
        // Lets the signal end the program, so that a terminal that it has taken over is given back before.
        var signals = handledSignals
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(second)
        // The program was started to ignore that signal.
        _exit(128 + second)
    }

    private static func waitForSignal() -> Int32 {
        var signals = handledSignals
        var signal: Int32 = 0
        while sigwait(&signals, &signal) != 0 {}
        return signal
    }

    private static let handledSignals: sigset_t = {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGTERM] { sigaddset(&signals, signal) }
        // `nohup` lets a program ignore SIGHUP. If it were blocked, `sigwait` would get it nevertheless. SIGINT is
        // handled in any case: a shell's script starts its background programs with that ignored, and may end them by
        // it.
        if !isIgnored(SIGHUP) { sigaddset(&signals, SIGHUP) }
        return signals
    }()

    private static func isIgnored(_ signal: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(signal, nil, &action) == 0 else { return false }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
