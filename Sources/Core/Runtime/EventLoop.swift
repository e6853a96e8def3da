/// One thread that runs everything a session and its transports do.
///
/// Nothing else in Core knows time or threads. A loop is also a serial executor and a task executor, so that an
/// actor or a task of the program may live on it and call the session without a thread hop.
///
/// Implementations: `ThreadEventLoop` (a thread that only sleeps and runs work), `VirtualEventLoop` in
/// NighTestKit (time that moves when told), and the loops of transports that watch descriptors.
public protocol EventLoop: SerialExecutor, TaskExecutor {
    /// The time on this loop's clock. On the loop it may be that of the current turn's start; callable anywhere.
    var now: Moment { get }

    /// Whether the caller runs on this loop. Callable anywhere.
    var isCurrent: Bool { get }

    /// Runs `work` on the loop, once, in the order of the calls. Callable from any thread; never runs it inside
    /// the call. Called on the loop, the work runs in the same turn, after what is queued already: this is how
    /// writes are gathered. Work given to a loop that has stopped is dropped.
    func execute(_ work: @escaping @Sendable () -> Void)

    /// Runs `work` on the loop once `moment` has come; never early, and in the order of the moments. To be called
    /// on the loop. The work must not be taken to run when the loop stops first.
    @discardableResult
    func schedule(at moment: Moment, _ work: @escaping @Sendable () -> Void) -> LoopTimer

    /// Takes back what `schedule` promised; does nothing when it has run. To be called on the loop.
    func cancel(_ timer: LoopTimer)
}

/// A promise of `EventLoop.schedule`, to be handed to `EventLoop.cancel`.
@frozen
public struct LoopTimer: Hashable, Sendable {
    /// Unique within its loop.
    public let number: UInt64

    /// For loops that keep their own numbering.
    @inlinable
    public init(number: UInt64) { self.number = number }
}

extension EventLoop {
    /// Runs a job of Swift concurrency on the loop, as work like any other.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        execute {
            job.runSynchronously(
                isolatedTo: self.asUnownedSerialExecutor(), taskExecutor: self.asUnownedTaskExecutor())
        }
    }

    /// Stops the program when called off the loop.
    public func checkIsolated() {
        precondition(isCurrent, "called off the event loop that this code is confined to")
    }
}
