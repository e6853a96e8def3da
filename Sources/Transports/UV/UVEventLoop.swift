import CUV
import Glibc
import NighCore
import Synchronization

/// The event loop of every transport with a descriptor under it: one libuv loop on one thread of its own.
///
/// A turn begins when the loop wakes: whatever the descriptors brought and the timers that are due, then the work that all
/// of this and other threads have handed to `execute`, until none is left. Its moments are those of `CLOCK_MONOTONIC`.
///
/// The thread starts with the loop and ends with ``shutdown()``; until then it keeps the loop alive.
///
/// `@unchecked Sendable`: `incoming`, `isWoken` and `takesWork` are guarded by the lock; what is marked "loop only" is touched by
/// the loop's thread alone, or before it has started.
public final class UVEventLoop: @unchecked Sendable {
    private struct TimedWork {
        let run: @Sendable () -> Void
    }

    /// How often work may hand over more work before descriptors are looked at again.
    private static let roundsInTurn = 64
    /// Beyond this many, storage that a burst has grown is given back.
    private static let keptCapacity = 16_384

    private let lock = Lock()
    @exclusivity(unchecked) private var incoming = ContiguousArray<LoopWork>()
    @exclusivity(unchecked) private var isWoken = false
    @exclusivity(unchecked) private var takesWork = true
    /// Whether `incoming` has something: spares most looks the lock.
    private let hasWork = Atomic<Bool>(false)

    private let thread = LoopThread()
    private let isStopping = Atomic<Bool>(false)

    // Loop only.
    /// The libuv loop, for whoever makes a `UVHandle`. Loop only.
    public let raw = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
    private let wakeHandle = UnsafeMutablePointer<uv_async_t>.allocate(capacity: 1)
    private let beforeSleep = UnsafeMutablePointer<uv_prepare_t>.allocate(capacity: 1)
    private let afterSleep = UnsafeMutablePointer<uv_check_t>.allocate(capacity: 1)
    /// Fires at the earliest of `timers`. A descriptor and not libuv's timer, which counts in milliseconds and has the kernel
    /// set a timeout with each wait: a twentieth of a small message's round trip.
    private let timerDescriptor = timerfd_create(
        CLOCK_MONOTONIC, Int32(TFD_NONBLOCK | TFD_CLOEXEC))
    private let timerPoll = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
    /// What the loop itself has handed over, and `batch`: what is being run.
    @exclusivity(unchecked) private var own = ContiguousArray<LoopWork>()
    @exclusivity(unchecked) private var batch = ContiguousArray<LoopWork>()
    @exclusivity(unchecked) private var hasEnded = false
    @exclusivity(unchecked) private var timers = TimerQueue<TimedWork>()
    @exclusivity(unchecked) private var armedFor = Moment.never
    @exclusivity(unchecked) private var turnMoment: Moment?
    /// Where streams on this loop read into. Loop only.
    package let readBuffer = ReadBuffer()
    /// The last look for work found some: until one finds none, others add to it without waking the loop.
    @exclusivity(unchecked) private var isTaking = false

    /// Starts the loop. Running out of descriptors here stops the program: a session cannot be without its loop. Who can do
    /// without calls ``make()``.
    public convenience init() {
        do throws(NighError) {
            try self.init(on: ())
        } catch {
            preconditionFailure("an event loop could not be made: \(error)")
        }
    }

    /// Starts a loop. Fails where the system has no descriptor or no thread to give. The first loop of a program needs two
    /// descriptors more for what libuv shares among all of them, and stops the program where it does not get these.
    public static func make() throws(NighError) -> UVEventLoop { try UVEventLoop(on: ()) }

    /// Which libuv runs here, as in `1.44.2`.
    public static var libraryVersion: String { String(cString: uv_version_string()) }

    private init(on nothing: Void) throws(NighError) {
        guard timerDescriptor >= 0 else { throw Self.failure(-errno) }
        do throws(NighError) {
            // Where libuv 1.44 gets only some of the descriptors for a loop, it never closes the first again.
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
        return NighError(.starting, error.cause, advice: error.shortageAdvice)
    }

    /// Brings the loop's own handles to life; `end` takes away whatever was made of them.
    private func prepare() throws(NighError) {
        let data = Unmanaged.passUnretained(self).toOpaque()
        wakeHandle.pointee.data = data
        beforeSleep.pointee.data = data
        afterSleep.pointee.data = data
        timerPoll.pointee.data = data
        uv_prepare_init(raw, beforeSleep)
        uv_check_init(raw, afterSleep)
        var status = uv_async_init(raw, wakeHandle) { UVEventLoop.with($0?.pointee.data) { $0.woken() } }
        if status == 0 { status = uv_poll_init(raw, timerPoll, timerDescriptor) }
        guard status == 0 else { throw Self.failure(status) }
        uv_prepare_start(beforeSleep) { UVEventLoop.with($0?.pointee.data) { $0.sleeps() } }
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
        // The thread keeps its loop alive, so that no reference is taken.
        Unmanaged<UVEventLoop>.fromOpaque(data)._withUnsafeGuaranteedRef(body)
    }

    /// Ends the loop: what is running is finished, what waits (work, timers, jobs of tasks) is dropped, handles that are
    /// still open are closed without a word, the thread ends. Waits for the thread, except when called on it. Callable from any
    /// thread, any number of times.
    public func shutdown() {
        if !isStopping.exchange(true, ordering: .sequentiallyConsistent) { wake() }
        thread.join()
    }

    /// Tells `body` when something of `events` happens to `descriptor`, on the loop, until the watch is cancelled or let
    /// go of. An error on the descriptor is told as no event at all. The descriptor becomes non-blocking. To be called on the
    /// loop. Fails for what cannot be waited for: a plain file, a closed descriptor, one that is watched already.
    public func watch(
        _ descriptor: Int32, for events: DescriptorEvents, _ body: @escaping (DescriptorEvents) -> Void
    ) throws(NighError) -> DescriptorWatch {
        precondition(isCurrent, "UVEventLoop.watch was called off the loop")
        return try DescriptorWatch(descriptor, events, on: raw, body)
    }

    // MARK: Other threads

    private func wake() {
        lock.withLock { if takesWork { uv_async_send(wakeHandle) } }
    }

    @inline(__always)
    private func add(_ work: LoopWork) {
        guard thread.isCurrent else { return addFromElsewhere(work) }
        if !hasEnded { own.append(work) }
    }

    private func addFromElsewhere(_ work: LoopWork) {
        lock.withLock {
            guard takesWork else { return }
            incoming.append(work)
            hasWork.store(true, ordering: .relaxed)
            guard !isWoken else { return }
            isWoken = true
            uv_async_send(wakeHandle)
        }
    }

    // MARK: Turns

    private func run() {
        while !isStopping.load(ordering: .relaxed) { uv_run(raw, UV_RUN_DEFAULT) }
        end()
    }

    private func woken() {
        if isStopping.load(ordering: .relaxed) { uv_stop(raw) }
    }

    /// Whatever timers and closed handles have left to do is done before the loop sleeps.
    private func sleeps() {
        runWork()
        turnMoment = nil
    }

    /// Runs all work there is, and what that brings, within bounds.
    private func runWork() {
        for _ in 0..<Self.roundsInTurn {
            guard takeWork() else { return }
            let serial = asUnownedSerialExecutor()
            let tasks = asUnownedTaskExecutor()
            // Another thread may have handed over some of it just now: it must not be run at a moment before that.
            turnMoment = nil
            if batch.count == 1, !isStopping.load(ordering: .relaxed) {
                // As nearly always. It is taken out, which costs no reference.
                batch.removeLast().run(on: serial, tasks)
            } else {
                for work in batch {
                    if isStopping.load(ordering: .relaxed) { break }
                    work.run(on: serial, tasks)
                }
                batch.removeAll(keepingCapacity: batch.count <= Self.keptCapacity)
            }
            if isStopping.load(ordering: .relaxed) { return uv_stop(raw) }
        }
        // The rest waits for a turn that does not sleep.
        wake()
    }

    /// Moves what waits to `batch`: first what the loop has handed over itself. False when there is none.
    @inline(__always)
    private func takeWork() -> Bool {
        swap(&own, &batch)
        // What another thread adds behind this look comes with a wake.
        if isTaking || hasWork.load(ordering: .relaxed) { takeIncoming() }
        return !batch.isEmpty
    }

    private func takeIncoming() {
        isTaking = lock.withLock {
            hasWork.store(false, ordering: .relaxed)
            // As long as some comes, there will be another look, and nobody has to wake the loop.
            isWoken = !incoming.isEmpty
            guard isWoken else { return false }
            if batch.isEmpty {
                swap(&incoming, &batch)
            } else {
                batch.append(contentsOf: incoming)
                incoming.removeAll(keepingCapacity: incoming.count <= Self.keptCapacity)
            }
            return true
        }
    }

    private func timerFired() {
        var expirations: UInt64 = 0
        read(timerDescriptor, &expirations, MemoryLayout<UInt64>.size)
        armedFor = .never
        let now = LoopThread.now
        turnMoment = now
        while !isStopping.load(ordering: .relaxed), let due = timers.takeDue(at: now) { due.run() }
        armTimer()
    }

    private func armTimer() {
        guard let due = timers.earliest, due < armedFor else { return }
        armedFor = due
        // Zero would switch it off.
        let nanoseconds = max(due.nanoseconds, 1)
        var setting = itimerspec()
        setting.it_value.tv_sec = Int(nanoseconds / 1_000_000_000)
        setting.it_value.tv_nsec = Int(nanoseconds % 1_000_000_000)
        timerfd_settime(timerDescriptor, Int32(TFD_TIMER_ABSTIME), &setting, nil)
    }

    // MARK: End

    private func end() {
        var dropped = ContiguousArray<LoopWork>()
        lock.withLock {
            takesWork = false
            swap(&incoming, &dropped)
        }
        // Letting go of closures may run any code, so it happens here on the loop and without the lock.
        hasEnded = true
        dropped.removeAll()
        own.removeAll()
        batch.removeAll()
        timers.removeAll()
        uv_walk(
            raw,
            { handle, loop in
                guard let handle, uv_is_closing(handle) == 0, let data = handle.pointee.data else { return }
                // The loop's own handles have the loop for their data.
                guard data != loop else { return uv_close(handle, nil) }
                Unmanaged<UVHandle>.fromOpaque(data).takeUnretainedValue().close()
            }, Unmanaged.passUnretained(self).toOpaque())
        // A program that was asked to stop before may still have the flag set: run until all handles are gone.
        while uv_run(raw, UV_RUN_DEFAULT) != 0 {}
        Glibc.close(timerDescriptor)
        let status = uv_loop_close(raw)
        assert(status == 0, "an event loop ended with something open: \(UVError(code: status))")
    }
}

// What these do stands with the protocol.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension UVEventLoop: EventLoop {
    public var now: Moment {
        guard isCurrent else { return LoopThread.now }
        if let turnMoment { return turnMoment }
        let moment = LoopThread.now
        turnMoment = moment
        return moment
    }

    public var isCurrent: Bool { thread.isCurrent }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    public func execute(_ work: @escaping @Sendable () -> Void) { add(.closure(work)) }

    public func enqueue(_ job: consuming ExecutorJob) { add(.job(UnownedJob(job))) }

    @discardableResult
    public func schedule(at moment: Moment, _ work: @escaping @Sendable () -> Void) -> LoopTimer {
        precondition(isCurrent, "UVEventLoop.schedule was called off the loop")
        let timer = LoopTimer(number: timers.add(TimedWork(run: work), at: moment))
        armTimer()
        return timer
    }

    public func cancel(_ timer: LoopTimer) {
        precondition(isCurrent, "UVEventLoop.cancel was called off the loop")
        timers.remove(timer.number)
    }
}
