import Glibc
import NighCore

/// The thread of an event loop: can be started, joined, and asked whether the caller runs on it.
///
/// Process-wide signals are blocked on it, so that the program's own threads handle them. `SIGPIPE` is blocked too, so
/// that writing to something the other side has closed is an ordinary error.
///
/// `@unchecked Sendable`: `thread` is written before anybody else has the object, the lock guards `hasEnded` and
/// `isJoinedOrDetached`, and the rest is atomic.
package final class LoopThread: @unchecked Sendable {
    private var thread = pthread_t()
    /// Tells whether a caller runs on this thread.
    package let mark = ThreadMark()
    private let lock = Lock()
    private let ended = Condition()
    private var hasEnded = false
    /// Whether some caller has joined or detached the thread, or is about to.
    private var isJoinedOrDetached = false

    private final class Body {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }

    /// Creates a thread that is not started yet.
    package init() {}

    /// Starts the thread, which calls `run` and then ends. Fails if the system cannot create a thread.
    package func start(_ run: @escaping () -> Void) throws(NighError) {
        let body = Unmanaged.passRetained(
            Body { [self] in
                Self.blockSignals()
                mark.begin()
                run()
                mark.end()
                end()
            })
        let status = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, body.toOpaque())
        guard status != 0 else { return }
        body.release()
        throw NighError(
            .starting, .system(status, String(cString: strerror(status))),
            advice: "too many threads are running, or memory is short: `ulimit -u` shows the limit")
    }

    /// Starts the thread of an event loop. Stops the program if the system cannot create a thread, because
    /// no session can exist without a loop.
    package func startOrStopProgram(_ run: @escaping () -> Void) {
        do throws(NighError) {
            try start(run)
        } catch {
            preconditionFailure("no thread could be made for an event loop: \(error)")
        }
    }

    /// The current time of `CLOCK_MONOTONIC`, which every loop with a thread of its own uses.
    package static var now: Moment {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Moment(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Whether the caller runs on this thread.
    @inline(__always)
    package var isCurrent: Bool { mark.isCurrent }

    /// Waits until the thread has ended. Several threads may wait at once. Called on the thread itself, it
    /// does not wait, and detaches the thread.
    package func join() {
        let isCurrent = isCurrent
        let isFirst = lock.withLock {
            let isFirst = !isJoinedOrDetached
            isJoinedOrDetached = true
            while !isCurrent, !isFirst, !hasEnded { ended.wait(with: lock) }
            return isFirst
        }
        guard isFirst else { return }
        if isCurrent { pthread_detach(pthread_self()) } else { pthread_join(thread, nil) }
    }

    private func end() {
        lock.withLock {
            hasEnded = true
            ended.notify()
        }
    }

    private static func blockSignals() {
        var signals = sigset_t()
        sigfillset(&signals)
        for fault in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF] {
            sigdelset(&signals, fault)
        }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
}
