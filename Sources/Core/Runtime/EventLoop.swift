/// One thread that runs everything a session and its transports do.
///
/// A session's machines get the time from it. A loop is also a serial executor and a task executor, so that an actor or
/// a task of the program can run on it and call the session without a thread hop.
///
/// Implementations: `ThreadEventLoop` (a thread that only sleeps and runs work), `VirtualEventLoop` in NighTestKit
/// (virtual time), and the loops of transports that watch descriptors.
public protocol EventLoop: SerialExecutor, TaskExecutor {
    /// The time on this loop's clock. On the loop it may be the time at which the loop last woke. Callable from any
    /// thread.
    var now: Moment { get }

    /// Whether the caller runs on this loop. Callable from any thread.
    var isCurrent: Bool { get }

    /// Runs `work` once on the loop, in the order of the calls. Callable from any thread.
    ///
    /// The work never runs inside the call. If called on the loop, it runs in a later turn: after the present work and
    /// all work queued before, but before the loop waits again. So writes can be gathered. A loop that has stopped
    /// drops the work.
    func execute(_ work: @escaping @Sendable () -> Void)

    /// Runs `work` on the loop at `moment`, never earlier, and in the order of the moments. Call this on the loop only.
    /// So the work may refer to objects that belong to the loop and are not `Sendable`.
    ///
    /// Do not rely on the work to run: it is dropped if the loop stops first.
    @discardableResult
    func schedule(at moment: Moment, _ work: @escaping () -> Void) -> LoopTimer

    /// Cancels scheduled work. Does nothing if the work has already run. Call this on the loop only.
    func cancel(_ timer: LoopTimer)
}

/// Identifies work scheduled by `EventLoop.schedule`, for `EventLoop.cancel`.
@frozen
public struct LoopTimer: Hashable, Sendable {
    /// A number that is unique within its loop.
    public let number: UInt64

    /// Creates the timer numbered `number`, for loops that number their timers themselves.
    @inlinable
    public init(number: UInt64) { self.number = number }
}

extension EventLoop {
    /// Runs `work` in a later turn, like `execute`. Call this on the loop only. So the work may refer to objects that
    /// belong to the loop and are not `Sendable`.
    public func later(_ work: @escaping () -> Void) {
        assert(isCurrent, "EventLoop.later must be called on the loop")
        execute(bound(work))
    }

    /// Returns `work` for code of other threads, which may pass it to `execute` and nothing else. Debug builds check
    /// that.
    package func bound(_ work: @escaping () -> Void) -> @Sendable () -> Void {
        let bound = unsafeBitCast(BoundWork(run: work), to: SendableWork.self).run
        #if DEBUG
            return {
                assert(self.isCurrent, "work of a loop was run off the loop")
                bound()
            }
        #else
            return bound
        #endif
    }

    /// Runs a job of Swift concurrency on the loop, like any other work.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        execute {
            job.runSynchronously(
                isolatedTo: self.asUnownedSerialExecutor(), taskExecutor: self.asUnownedTaskExecutor())
        }
    }

    /// Stops the program if called off the loop.
    public func checkIsolated() {
        precondition(isCurrent, "called from outside the event loop that this code is confined to")
    }
}

/// A closure that belongs to a loop, and the same memory as other threads may have it: only the compiler tells closures
/// that are `Sendable` from others. In a struct, because a bare closure would be wrapped, and allocated, for each cast.
private struct BoundWork {
    let run: () -> Void
}

private struct SendableWork: Sendable {
    let run: @Sendable () -> Void
}
