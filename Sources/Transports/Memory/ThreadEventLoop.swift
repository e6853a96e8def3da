import NighCore
import NighSystem
import Synchronization

/// An event loop on a thread of its own: it sleeps, runs the work it is given, and sleeps again.
///
/// It is for transports that watch no descriptors (memory), and for programs and tests that only need a place to run
/// work. It reads `CLOCK_MONOTONIC`, so its moments can be compared with those of any other `ThreadEventLoop` on the
/// machine.
///
/// The thread starts with the loop and ends with ``shutdown()``; until then it keeps the loop alive. Once its arrays
/// have grown, `execute` with a closure made beforehand allocates nothing, and neither does running a task's job.
///
/// `@unchecked Sendable`: the lock guards `incoming` and `isAsleep`. Only the loop's thread touches `timers` and
/// `turnMoment`. The rest is atomic or constant.
public final class ThreadEventLoop: @unchecked Sendable {
    private struct TimedWork {
        let run: () -> Void
    }

    /// If a burst has grown an array beyond this many elements, its memory is released.
    private static let keptCapacity = 16_384

    private let lock = Lock()
    private let woken = Condition()
    // Each turn uses these, and does not run work meanwhile. So there is no run-time check for exclusive access.
    @exclusivity(unchecked) private var incoming = ContiguousArray<LoopWork>()
    private var isAsleep = false
    @exclusivity(unchecked) private var timers = TimerQueue<TimedWork>()
    private var turnMoment = Moment(nanoseconds: 0)
    package let thread = LoopThread()
    private let isStopping = Atomic<Bool>(false)

    /// Starts the loop and its thread. Stops the program if the system has no thread to give.
    public init() {
        turnMoment = LoopThread.now
        thread.startOrStopProgram { self.run() }
    }

    /// Ends the loop and its thread. Work that is running is finished. Waiting work, timers and jobs of tasks are
    /// dropped. Waits for the thread, except when called on it. Callable on any thread, any number of times.
    public func shutdown() {
        let isFirst = !isStopping.exchange(true, ordering: .sequentiallyConsistent)
        if isFirst { lock.withLock { woken.notify() } }
        thread.join()
    }

    private func add(_ work: LoopWork) {
        lock.withLock {
            // With the lock held, because nobody would release work added after the loop has looked for the last time.
            guard !isStopping.load(ordering: .relaxed) else { return }
            incoming.append(work)
            if isAsleep {
                isAsleep = false
                woken.notify()
            }
        }
    }

    private func run() {
        let serial = asUnownedSerialExecutor()
        let tasks = asUnownedTaskExecutor()
        var batch = ContiguousArray<LoopWork>()
        while !isStopping.load(ordering: .relaxed) {
            waitForWork(into: &batch)
            // Read after the wait: the work of this turn must not see the time at which the loop fell asleep.
            turnMoment = LoopThread.now
            while let due = timers.takeDue(at: turnMoment) {
                due.run()
                if isStopping.load(ordering: .relaxed) { break }
            }
            for work in batch {
                if isStopping.load(ordering: .relaxed) { break }
                work.run(on: serial, tasks)
            }
            batch.removeAll(keepingCapacity: batch.count <= Self.keptCapacity)
        }
        // Releasing closures may run any code, so it happens here on the loop and without the lock.
        lock.withLock { swap(&incoming, &batch) }
        batch.removeAll()
        timers.removeAll()
    }

    /// Sleeps until there is work, a timer is due or the loop stops; then takes all work there is.
    private func waitForWork(into batch: inout ContiguousArray<LoopWork>) {
        lock.withLock {
            while incoming.isEmpty, !isStopping.load(ordering: .relaxed) {
                guard let due = timers.earliest, due != .never else {
                    isAsleep = true
                    woken.wait(with: lock)
                    continue
                }
                guard due > LoopThread.now else { break }
                isAsleep = true
                woken.wait(with: lock, until: due)
            }
            isAsleep = false
            swap(&incoming, &batch)
        }
    }
}

// The protocol documents these members.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension ThreadEventLoop: ThreadedEventLoop {
    public var now: Moment { isCurrent ? turnMoment : LoopThread.now }

    package var threadMark: ThreadMark { thread.mark }

    public var isCurrent: Bool { thread.mark.isCurrent }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    public func execute(_ work: @escaping @Sendable () -> Void) { add(.closure(work)) }

    public func enqueue(_ job: consuming ExecutorJob) { add(.job(UnownedJob(job))) }

    /// Runs a job of a task that prefers this loop and is isolated to no actor, in a later turn.
    @_implements(TaskExecutor,enqueue(_:))
    public func enqueueUnisolated(_ job: consuming ExecutorJob) { add(.unisolatedJob(UnownedJob(job))) }

    @discardableResult
    public func schedule(at moment: Moment, _ work: @escaping () -> Void) -> LoopTimer {
        precondition(isCurrent, "ThreadEventLoop.schedule must be called on the loop")
        return LoopTimer(number: timers.add(TimedWork(run: work), at: moment))
    }

    public func cancel(_ timer: LoopTimer) {
        precondition(isCurrent, "ThreadEventLoop.cancel must be called on the loop")
        timers.remove(timer.number)
    }
}
