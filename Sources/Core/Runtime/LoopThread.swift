import Glibc
import Synchronization

/// The thread of an event loop: can be started, joined, and asked whether the caller runs on it.
///
/// Process-wide signals are blocked on it, so that the program's own threads handle them. `SIGPIPE` is blocked too, so
/// that writing to something the other side has closed is an ordinary error.
///
/// `@unchecked Sendable`: `thread` is written before anybody else has the object, the lock guards `hasEnded` and
/// `isJoinedOrDetached`, and the rest is atomic.
package final class LoopThread: @unchecked Sendable {
    private var thread = pthread_t()
    private let number = Atomic<UInt>(0)
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
    package var isCurrent: Bool { number.load(ordering: .relaxed) == UInt(pthread_self()) }

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

/// An event loop with one thread of its own from beginning to end. A session compares that thread itself: asking the
/// loop would take a tenth of the time of a small message.
package protocol ThreadedEventLoop: EventLoop {
    /// The thread.
    var thread: LoopThread { get }
}

/// One piece of work for an event loop.
///
/// A closure is stored in this enum and not directly in a generic container, because the
/// container would wrap it, which allocates.
package enum LoopWork {
    /// Work from `EventLoop.execute`.
    case closure(@Sendable () -> Void)
    /// The next part of a task that is isolated to an actor of the loop.
    case job(UnownedJob)
    /// The next part of a task that prefers the loop and is isolated to no actor. If it ran as an actor's, every call
    /// of an async function would queue it again.
    case unisolatedJob(UnownedJob)

    /// Runs the work. Called on the loop.
    @inline(__always)
    package func run(on serial: UnownedSerialExecutor, _ tasks: UnownedTaskExecutor) {
        switch self {
        case .closure(let run): run()
        case .job(let job): job.runSynchronously(isolatedTo: serial, taskExecutor: tasks)
        case .unisolatedJob(let job): job.runSynchronously(on: tasks)
        }
    }
}
