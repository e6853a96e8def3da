import Glibc
import Synchronization

/// The thread of an event loop: starts with it, is asked by everybody whether they are on it, and is joined once.
///
/// Signals meant for the process are blocked on it, so that they reach the threads of the program, and so is `SIGPIPE`:
/// writing to what the other side has closed is an error like any other.
///
/// `@unchecked Sendable`: `thread` is written before anybody else has the object, the rest is atomic.
package final class LoopThread: @unchecked Sendable {
    private var thread = pthread_t()
    private let number = Atomic<UInt>(0)
    private let isJoined = Atomic<Bool>(false)

    private final class Body {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }

    /// A thread that is not started yet.
    package init() {}

    /// Starts it; `run` is all it does.
    package func start(_ run: @escaping () -> Void) {
        let body = Body { [self] in
            Self.blockSignals()
            number.store(UInt(pthread_self()), ordering: .relaxed)
            run()
            number.store(0, ordering: .relaxed)
        }
        let status = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(body).toOpaque())
        precondition(status == 0, "no thread could be made for an event loop: error \(status)")
        number.store(UInt(thread), ordering: .relaxed)
    }

    /// Whether the caller is on it.
    package var isCurrent: Bool { number.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Waits for its end; called on it, or a second time, it only lets go of it.
    package func join() {
        guard !isJoined.exchange(true, ordering: .relaxed) else { return }
        if isCurrent { pthread_detach(thread) } else { pthread_join(thread, nil) }
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
