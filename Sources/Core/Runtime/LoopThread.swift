import Glibc
import Synchronization

/// The thread of an event loop: starts with it, is asked by everybody whether they are on it, and is waited for.
///
/// Signals meant for the process are blocked on it, so that they reach the threads of the program, and so is `SIGPIPE`:
/// writing to what the other side has closed is an error like any other.
///
/// `@unchecked Sendable`: `thread` is written before anybody else has the object, `hasEnded` and `isLetGo` are guarded by the
/// mutex, the rest is atomic.
package final class LoopThread: @unchecked Sendable {
    private var thread = pthread_t()
    private let number = Atomic<UInt>(0)
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let ended = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var hasEnded = false
    /// Whether somebody has joined or detached it, or is about to.
    private var isLetGo = false

    private final class Body {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }

    /// A thread that is not started yet.
    package init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(ended, nil)
    }

    deinit {
        pthread_cond_destroy(ended)
        pthread_mutex_destroy(mutex)
        ended.deallocate()
        mutex.deallocate()
    }

    /// Starts it; `run` is all it does. Fails where the system has no thread to give.
    package func start(_ run: @escaping () -> Void) throws(NighError) {
        let body = Unmanaged.passRetained(
            Body { [self] in
                Self.blockSignals()
                number.store(UInt(pthread_self()), ordering: .relaxed)
                run()
                number.store(0, ordering: .relaxed)
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
            advice: "too many threads are running, or memory is short: `ulimit -u` tells how many may")
    }

    /// Starts the thread of a loop, without which there can be no session: where it cannot be had, the program is stopped.
    package func startOrStopProgram(_ run: @escaping () -> Void) {
        do throws(NighError) {
            try start(run)
        } catch {
            preconditionFailure("no thread could be made for an event loop: \(error)")
        }
    }

    /// The time that every loop with a thread of its own goes by: `CLOCK_MONOTONIC`.
    package static var now: Moment {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Moment(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Whether the caller is on it.
    package var isCurrent: Bool { number.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Waits for its end, whoever else does so too; called on it, it only lets go of it.
    package func join() {
        let isCurrent = isCurrent
        pthread_mutex_lock(mutex)
        let isFirst = !isLetGo
        isLetGo = true
        while !isCurrent, !isFirst, !hasEnded { pthread_cond_wait(ended, mutex) }
        pthread_mutex_unlock(mutex)
        guard isFirst else { return }
        if isCurrent { pthread_detach(pthread_self()) } else { pthread_join(thread, nil) }
    }

    private func end() {
        pthread_mutex_lock(mutex)
        hasEnded = true
        pthread_cond_broadcast(ended)
        pthread_mutex_unlock(mutex)
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

/// One thing a loop has been given to do. No closure goes into a generic container by itself: that would wrap it, and
/// allocate.
package enum LoopWork {
    /// From `EventLoop.execute`.
    case closure(@Sendable () -> Void)
    /// From `EventLoop.enqueue`: the next piece of a task.
    case job(UnownedJob)

    /// Does it, on the loop.
    @inline(__always)
    package func run(on serial: UnownedSerialExecutor, _ tasks: UnownedTaskExecutor) {
        switch self {
        case .closure(let run): run()
        case .job(let job): job.runSynchronously(isolatedTo: serial, taskExecutor: tasks)
        }
    }
}
