import CUV
import Glibc
import NighCore
import NighSystem
import Synchronization

/// The event loop for transports that use descriptors: one libuv loop on a thread of its own.
///
/// A turn begins when the loop wakes. First come the events of descriptors and the timers that are due, then the work
/// that these and other threads have passed to `execute`, until none is left. The loop's moments are those of
/// `CLOCK_MONOTONIC`.
///
/// The thread starts with the loop and ends with ``shutdown()``; until then it keeps the loop alive.
///
/// `@unchecked Sendable`: everything but `incoming` is touched only by the loop's thread, or before that thread has
/// started.
public final class UVEventLoop: @unchecked Sendable {
    private struct TimedWork {
        let run: () -> Void
    }

    /// How many times work may add more work before the loop looks at descriptors again.
    private static let roundsInTurn = 64
    /// If a burst has grown an array beyond this many elements, its memory is released.
    private static let keptCapacity = 16_384

    /// The work of other threads.
    private struct Incoming {
        var work = ContiguousArray<LoopWork>()
        var isWoken = false
        var takesWork = true
    }

    private let incoming = Guarded(Incoming())
    /// Whether `incoming` has something. It saves most checks the lock.
    private let hasWork = Atomic<Bool>(false)

    package let thread = LoopThread()
    private let isStopping = Atomic<Bool>(false)

    // Loop only.
    /// The libuv loop, for making a `UVHandle`. Loop only.
    public let raw = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
    private let wakeHandle = UnsafeMutablePointer<uv_async_t>.allocate(capacity: 1)
    private let beforeSleep = UnsafeMutablePointer<uv_prepare_t>.allocate(capacity: 1)
    private let afterSleep = UnsafeMutablePointer<uv_check_t>.allocate(capacity: 1)
    /// Fires at the earliest of `timers`. A descriptor and not libuv's timer, because that one counts in milliseconds
    /// and makes the kernel set a timeout for each wait, which costs a twentieth of a small message's round trip.
    private let timerDescriptor = timerfd_create(
        CLOCK_MONOTONIC, Int32(TFD_NONBLOCK | TFD_CLOEXEC))
    private let timerPoll = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
    private struct State {
        /// The work that the loop's own thread has added.
        var own = ContiguousArray<LoopWork>()
        /// The work that is being run.
        var batch = ContiguousArray<LoopWork>()
        var hasEnded = false
        var timers = TimerQueue<TimedWork>()
        var armedFor = Moment.never
        var turnMoment: Moment?
        /// Whether the last check found incoming work. Until a check finds none, other threads add work without waking
        /// the loop.
        var isTaking = false

        mutating func takeOwn() { swap(&own, &batch) }
    }

    /// Used at each turn. It is not accessed while work runs, so it needs no run-time check for exclusive access.
    @exclusivity(unchecked) private var state = State()
    /// The buffer that streams on this loop read into. Loop only.
    package let readBuffer = ReadBuffer()
    /// The list that streams on this loop write from. Loop only.
    package let gatherList = GatherList()

    /// Starts the loop. Stops the program if the system has no descriptor or no thread to give, because a session
    /// cannot exist without its loop. A program that can do without calls ``make()``.
    public convenience init() {
        do throws(NighError) {
            try self.init(orThrow: ())
        } catch {
            preconditionFailure("an event loop could not be made: \(error)")
        }
    }

    /// Starts a loop. Fails if the system has no descriptor or no thread to give. The first loop of a program needs two
    /// more descriptors for the state that libuv shares among all loops, and stops the program if it does not get them.
    public static func make() throws(NighError) -> UVEventLoop { try UVEventLoop(orThrow: ()) }

    /// The version of libuv that runs here, as in `1.44.2`.
    public static var libraryVersion: String { String(cString: uv_version_string()) }

    private init(orThrow _: Void) throws(NighError) {
        guard timerDescriptor >= 0 else { throw Self.failure(-errno) }
        do throws(NighError) {
            // If libuv 1.44 gets only some of the descriptors for a loop, it never closes those that it got.
            if let shortage = SystemShortage.ofDescriptors(4) { throw shortage }
            let status = uv_loop_init(raw)
            guard status == 0 else { throw Self.failure(status) }
        } catch {
            Glibc.close(timerDescriptor)
            throw error
        }
        do throws(NighError) {
            try prepare()
            try thread.start { self.run() }
        } catch {
            end()
            throw error
        }
    }

    private static func failure(_ status: Int32) -> NighError {
        let error = UVError(code: status)
        return NighError(.starting, error.cause, advice: SocketFault(error.number).shortageAdvice)
    }

    /// Initialises the loop's own handles. If that fails, `end` removes those that were made.
    private func prepare() throws(NighError) {
        let data = Unmanaged.passUnretained(self).toOpaque()
        wakeHandle.pointee.data = data
        beforeSleep.pointee.data = data
        afterSleep.pointee.data = data
        timerPoll.pointee.data = data
        uv_prepare_init(raw, beforeSleep)
        uv_check_init(raw, afterSleep)
        var status = uv_async_init(raw, wakeHandle) { UVEventLoop.with($0?.pointee.data) { $0.didWake() } }
        if status == 0 { status = uv_poll_init(raw, timerPoll, timerDescriptor) }
        guard status == 0 else { throw Self.failure(status) }
        uv_prepare_start(beforeSleep) { UVEventLoop.with($0?.pointee.data) { $0.prepareToSleep() } }
        uv_poll_start(timerPoll, Int32(UV_READABLE.rawValue)) { handle, _, _ in
            UVEventLoop.with(handle?.pointee.data) { $0.timerFired() }
        }
        uv_check_start(afterSleep) { UVEventLoop.with($0?.pointee.data) { $0.runWork() } }
    }

    deinit {
        raw.deallocate()
        wakeHandle.deallocate()
        beforeSleep.deallocate()
        afterSleep.deallocate()
        timerPoll.deallocate()
    }

    @inline(__always)
    private static func with(_ data: UnsafeMutableRawPointer?, _ body: (UVEventLoop) -> Void) {
        guard let data else { return }
        // The thread keeps its loop alive, so no reference is taken.
        Unmanaged<UVEventLoop>.fromOpaque(data)._withUnsafeGuaranteedRef(body)
    }

    /// Ends the loop and its thread. Work that is running is finished. Waiting work, timers and jobs of tasks are
    /// dropped. Handles that are still open are closed without a report. Waits for the thread, except when called on
    /// it. Callable on any thread, any number of times.
    public func shutdown() {
        if !isStopping.exchange(true, ordering: .sequentiallyConsistent) { wake() }
        thread.join()
    }

    /// Calls `body` on the loop when one of `events` happens to `descriptor`, until the watch is cancelled or released.
    /// An error on the descriptor is reported as an empty set of events. The descriptor becomes non-blocking. Call it
    /// on the loop. Fails for a descriptor that cannot be waited for: a plain file, a closed descriptor, one that is
    /// already watched.
    public func watch(
        _ descriptor: Int32, for events: DescriptorEvents, _ body: @escaping (DescriptorEvents) -> Void
    ) throws(NighError) -> DescriptorWatch {
        precondition(isCurrent, "UVEventLoop.watch must be called on the loop")
        return try DescriptorWatch(descriptor, events, on: raw, body)
    }

    // MARK: Other threads

    private func wake() {
        incoming.withLock { if $0.takesWork { uv_async_send(wakeHandle) } }
    }

    @inline(__always)
    private func add(_ work: LoopWork) {
        guard thread.isCurrent else { return addFromElsewhere(work) }
        if !state.hasEnded { state.own.append(work) }
    }

    private func addFromElsewhere(_ work: LoopWork) {
        incoming.withLock { incoming in
            guard incoming.takesWork else { return }
            incoming.work.append(work)
            hasWork.store(true, ordering: .relaxed)
            guard !incoming.isWoken else { return }
            incoming.isWoken = true
            uv_async_send(wakeHandle)
        }
    }

    // MARK: Turns

    private func run() {
        while !isStopping.load(ordering: .relaxed) { uv_run(raw, UV_RUN_DEFAULT) }
        end()
    }

    private func didWake() {
        if isStopping.load(ordering: .relaxed) { uv_stop(raw) }
    }

    /// Runs work left by timers and closed handles, before the loop sleeps.
    private func prepareToSleep() {
        runWork()
        state.turnMoment = nil
    }

    /// Runs all work there is, and the work that it adds, within bounds.
    private func runWork() {
        for _ in 0..<Self.roundsInTurn {
            guard takeWork() else { return }
            let serial = asUnownedSerialExecutor()
            let tasks = asUnownedTaskExecutor()
            // Another thread may have added some of it just now. That work must not run at a moment before it was
            // added.
            state.turnMoment = nil
            if state.batch.count == 1, !isStopping.load(ordering: .relaxed) {
                // This is nearly always so. Taking the work out of the array costs no reference.
                state.batch.removeLast().run(on: serial, tasks)
            } else {
                for work in state.batch {
                    if isStopping.load(ordering: .relaxed) { break }
                    work.run(on: serial, tasks)
                }
                state.batch.removeAll(keepingCapacity: state.batch.count <= Self.keptCapacity)
            }
            if isStopping.load(ordering: .relaxed) { return uv_stop(raw) }
        }
        // The rest waits for a turn that does not sleep.
        wake()
    }

    /// Moves waiting work to `batch`, first the loop's own. Returns false if there is none.
    @inline(__always)
    private func takeWork() -> Bool {
        state.takeOwn()
        // Work that another thread adds after this check wakes the loop.
        if state.isTaking || hasWork.load(ordering: .relaxed) { takeIncoming() }
        return !state.batch.isEmpty
    }

    private func takeIncoming() {
        state.isTaking = incoming.withLock { incoming in
            hasWork.store(false, ordering: .relaxed)
            // As long as work comes, there is another check, and nobody has to wake the loop.
            incoming.isWoken = !incoming.work.isEmpty
            guard incoming.isWoken else { return false }
            if state.batch.isEmpty {
                swap(&incoming.work, &state.batch)
            } else {
                state.batch.append(contentsOf: incoming.work)
                incoming.work.removeAll(keepingCapacity: incoming.work.count <= Self.keptCapacity)
            }
            return true
        }
    }

    private func timerFired() {
        var expirations: UInt64 = 0
        read(timerDescriptor, &expirations, MemoryLayout<UInt64>.size)
        state.armedFor = .never
        let now = LoopThread.now
        state.turnMoment = now
        while !isStopping.load(ordering: .relaxed), let due = state.timers.takeDue(at: now) { due.run() }
        armTimer()
    }

    private func armTimer() {
        guard let due = state.timers.earliest, due < state.armedFor else { return }
        state.armedFor = due
        // Zero would disarm the timer.
        let nanoseconds = max(due.nanoseconds, 1)
        var setting = itimerspec()
        setting.it_value.tv_sec = Int(nanoseconds / 1_000_000_000)
        setting.it_value.tv_nsec = Int(nanoseconds % 1_000_000_000)
        timerfd_settime(timerDescriptor, Int32(TFD_TIMER_ABSTIME), &setting, nil)
    }

    // MARK: End

    private func end() {
        var dropped = ContiguousArray<LoopWork>()
        incoming.withLock { incoming in
            incoming.takesWork = false
            swap(&incoming.work, &dropped)
        }
        // Releasing closures may run any code, so it happens here on the loop and without the lock.
        state.hasEnded = true
        dropped.removeAll()
        state.own.removeAll()
        state.batch.removeAll()
        state.timers.removeAll()
        uv_walk(
            raw,
            { handle, loop in
                guard let handle, uv_is_closing(handle) == 0, let data = handle.pointee.data else { return }
                // The loop's own handles have the loop as their data.
                guard data != loop else { return uv_close(handle, nil) }
                Unmanaged<UVHandle>.fromOpaque(data).takeUnretainedValue().close()
            }, Unmanaged.passUnretained(self).toOpaque())
        // A stop that was requested earlier may have left libuv's flag set. So run until all handles are gone.
        while uv_run(raw, UV_RUN_DEFAULT) != 0 {}
        Glibc.close(timerDescriptor)
        let status = uv_loop_close(raw)
        assert(status == 0, "an event loop ended with something open: \(UVError(code: status))")
    }
}

// The protocol documents these members.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension UVEventLoop: ThreadedEventLoop {
    public var now: Moment {
        guard isCurrent else { return LoopThread.now }
        if let moment = state.turnMoment { return moment }
        let moment = LoopThread.now
        state.turnMoment = moment
        return moment
    }

    package var threadMark: ThreadMark { thread.mark }

    public var isCurrent: Bool { thread.mark.isCurrent }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    public func execute(_ work: @escaping @Sendable () -> Void) { add(.closure(work)) }

    /// Runs a job of an actor that this loop executes, in a later turn.
    public func enqueue(_ job: consuming ExecutorJob) { add(.job(UnownedJob(job))) }

    /// Runs a job of a task that prefers this loop and is isolated to no actor, in a later turn.
    @_implements(TaskExecutor,enqueue(_:))
    public func enqueueUnisolated(_ job: consuming ExecutorJob) { add(.unisolatedJob(UnownedJob(job))) }

    @discardableResult
    public func schedule(at moment: Moment, _ work: @escaping () -> Void) -> LoopTimer {
        precondition(isCurrent, "UVEventLoop.schedule must be called on the loop")
        let timer = LoopTimer(number: state.timers.add(TimedWork(run: work), at: moment))
        armTimer()
        return timer
    }

    public func cancel(_ timer: LoopTimer) {
        precondition(isCurrent, "UVEventLoop.cancel must be called on the loop")
        state.timers.remove(timer.number)
    }
}
