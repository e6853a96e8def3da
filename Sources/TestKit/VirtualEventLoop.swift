import Glibc
import NighCore
import Synchronization

/// An event loop whose time advances only when told. A whole network of sessions runs in one test, as fast as it can,
/// the same way every time.
///
/// Nothing runs by itself. The test calls `run(for:)` or one of the similar methods, and all work runs inside that
/// call, on the calling thread. Time jumps to the next timer, and only when nothing is queued.
///
/// Each run may do a limited number of pieces of work; it throws ``Livelock`` when it reaches the limit. So two parties
/// that answer each other forever fail a test instead of hanging it.
///
/// `isCurrent` is true on the thread that made the loop or that last ran it, also between runs. So a test may directly
/// call what is confined to the loop. Any thread may call `execute`; the test then decides when the work runs.
///
/// `@unchecked Sendable`: a lock guards the queue. Only the thread that runs the loop touches timers and time.
public final class VirtualEventLoop: @unchecked Sendable {
    /// A run reached its limit of work, and there was still more to do.
    public struct Livelock: Error, CustomStringConvertible {
        /// The limit, in pieces of work.
        public let workLimit: Int
        /// The moment at which the run reached the limit.
        public let moment: Moment

        /// A sentence with the limit and the moment.
        public var description: String {
            "the loop is still busy after \(workLimit) pieces of work in one run, at \(moment): "
                + "work repeats without end, or the run is too long for VirtualEventLoop(workLimit:)"
        }
    }

    private enum Work {
        case closure(@Sendable () -> Void)
        case job(UnownedJob)
    }

    private struct TimedWork {
        let run: () -> Void
    }

    /// The number of pieces of work that one run may do.
    public let workLimit: Int

    private let monitor = Monitor()
    private var queue = ContiguousArray<Work>()
    private let threadNumber: Atomic<UInt>
    private var timers = TimerQueue<TimedWork>()
    private var moment: Moment
    private var isRunning = false
    private var workLeft = 0

    /// Creates a loop whose own clock begins at `start` and whose runs do at most `workLimit` pieces of work each.
    public init(start: Moment = Moment(nanoseconds: 0), workLimit: Int = 2_000_000) {
        self.workLimit = workLimit
        moment = start
        threadNumber = Atomic(UInt(pthread_self()))
    }

    /// The number of pieces of work that the loop has done since it was made. It tells a quiet network from one whose
    /// timers spin.
    public private(set) var workDone = 0

    /// The number of queued pieces of work, and of waiting timers.
    public var pending: (work: Int, timers: Int) { (monitor.read { queue.count }, timers.count) }

    /// The moment of the next timer; nil if no timer waits.
    public var nextTimer: Moment? { timers.earliest }

    /// Runs the timers that are due now and the work that is queued now, once. Work queued meanwhile waits for the next
    /// turn. Returns whether there was anything to do. Time stands still.
    @discardableResult
    public func runTurn() throws(Livelock) -> Bool {
        begin()
        defer { isRunning = false }
        return try turn()
    }

    /// Runs everything that can run without time passing.
    public func runQueued() throws(Livelock) {
        begin()
        defer { isRunning = false }
        while try turn() {}
    }

    /// Advances time by `duration` and runs everything that is due by then. Stops exactly at the end.
    public func run(for duration: Duration) throws(Livelock) {
        try run(until: moment + Moment.Span(duration))
    }

    /// Advances time to `end` and runs everything that is due by then, including at `end`.
    public func run(until end: Moment) throws(Livelock) {
        begin()
        defer { isRunning = false }
        while true {
            while try turn() {}
            guard let next = timers.earliest, next <= end else { break }
            moment = max(moment, next)
        }
        if end != .never { moment = max(moment, end) }
    }

    /// Runs until `condition` returns true, for at most `duration` of virtual time. Evaluates it after each turn.
    /// Returns whether it held.
    public func run(until condition: () -> Bool, within duration: Duration) throws(Livelock) -> Bool {
        begin()
        defer { isRunning = false }
        let end = moment + Moment.Span(duration)
        while !condition() {
            if try turn() { continue }
            guard let next = timers.earliest, next <= end else {
                moment = max(moment, end)
                return condition()
            }
            moment = max(moment, next)
        }
        return true
    }

    /// Runs until nothing is queued and no timer waits, however far time has to advance. If a timer always restarts
    /// itself (a keep-alive), this throws; use `run(for:)` there.
    public func runUntilIdle() throws(Livelock) { try run(until: .never) }

    private func begin() {
        precondition(!isRunning, "VirtualEventLoop was run from inside itself")
        threadNumber.store(UInt(pthread_self()), ordering: .relaxed)
        isRunning = true
        workLeft = workLimit
    }

    private func turn() throws(Livelock) -> Bool {
        var didWork = false
        while let due = timers.takeDue(at: moment) {
            try count()
            due.run()
            didWork = true
        }
        let batch = monitor.read {
            defer { queue = [] }
            return queue
        }
        for work in batch {
            try count()
            switch work {
            case .closure(let run): run()
            case .job(let job):
                job.runSynchronously(
                    isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
            }
        }
        return didWork || !batch.isEmpty
    }

    private func count() throws(Livelock) {
        guard workLeft > 0 else { throw Livelock(workLimit: workLimit, moment: moment) }
        workLeft -= 1
        workDone += 1
    }
}

// The protocol documents these members.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension VirtualEventLoop: SimulatedLoop {
    public var now: Moment { moment }

    public var isCurrent: Bool { threadNumber.load(ordering: .relaxed) == UInt(pthread_self()) }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    public func execute(_ work: @escaping @Sendable () -> Void) {
        monitor.read { queue.append(.closure(work)) }
    }

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        monitor.read { queue.append(.job(job)) }
    }

    @discardableResult
    public func schedule(at moment: Moment, _ work: @escaping () -> Void) -> LoopTimer {
        precondition(isCurrent, "VirtualEventLoop.schedule was called off the loop")
        return LoopTimer(number: timers.add(TimedWork(run: work), at: moment))
    }

    public func cancel(_ timer: LoopTimer) {
        precondition(isCurrent, "VirtualEventLoop.cancel was called off the loop")
        timers.remove(timer.number)
    }
}
