import Synchronization

/// Whether a stream of Foundation is ready, at its end or failed at this moment.
struct StreamView {
    /// Whether there are bytes to read, or room to write.
    var isReady = false
    var isAtEnd = false
    var error: MCError?
}

/// The state of a stream of Foundation, and the calls of its delegate on the run loops that it is scheduled on.
///
/// `@unchecked Sendable`: the lock protects everything. Timers may be added to run loops of other threads and
/// invalidated there, which wakes those loops.
final class StreamEvents: @unchecked Sendable {
    private struct Schedule {
        let loop: RunLoop
        let mode: RunLoop.Mode
        /// Keeps the run loop running, and the stream alive, although nothing is due.
        let anchor: Timer
    }

    private struct State {
        var schedules: [Schedule] = []
        /// Whether a call of the delegate is on its way.
        var isSignalled = false
        var status = Stream.Status.notOpen
        /// Whether bytes or room have come, or the program has read or written, since the last `readyEvent`.
        var hasChanged = true
        var hasReportedOpening = false
        var hasReportedEnd = false
        weak var delegate: (any StreamDelegate)?
        weak var stream: Stream?
    }

    private let lock = NSLock()
    private var state = State()
    /// The event for bytes to read, or for room to write.
    private let readyEvent: Stream.Event
    private let view: @Sendable () -> StreamView

    init(_ readyEvent: Stream.Event, _ view: @escaping @Sendable () -> StreamView) {
        self.readyEvent = readyEvent
        self.view = view
    }

    func attach(to stream: Stream) { lock.withLock { state.stream = stream } }

    var delegate: (any StreamDelegate)? {
        get { lock.withLock { state.delegate } }
        set { lock.withLock { state.delegate = newValue } }
    }

    var isOpen: Bool { lock.withLock { state.status == .open } }

    var status: Stream.Status {
        let status = lock.withLock { state.status }
        guard status == .open else { return status }
        let view = view()
        if view.isReady { return .open }
        if view.error != nil { return .error }
        return view.isAtEnd ? .atEnd : .open
    }

    func open() {
        lock.withLock { if state.status == .notOpen { state.status = .open } }
        signal()
    }

    /// Returns false if the stream is closed already.
    func close() -> Bool {
        let wasOpen = lock.withLock {
            defer { state.status = .closed }
            return state.status != .closed
        }
        release { _ in true }
        return wasOpen
    }

    // MARK: Run loops

    func schedule(_ stream: Stream, in loop: RunLoop, mode: RunLoop.Mode) {
        let kept = Handover(stream)
        let anchor = Timer(fire: .distantFuture, interval: 1e9, repeats: true) { _ in
            withExtendedLifetime(kept) {}
        }
        let schedule = Schedule(loop: loop, mode: mode, anchor: anchor)
        let (isNew, isSignalled) = lock.withLock { () -> (Bool, Bool) in
            guard !state.schedules.contains(where: { $0.loop === loop && $0.mode == mode }) else {
                return (false, false)
            }
            state.schedules.append(schedule)
            return (true, state.isSignalled)
        }
        if isNew { loop.add(anchor, forMode: mode) }
        // The loop on which the delegate is to be called may not run any more.
        if isSignalled { addCall(to: schedule) }
        signal()
    }

    func remove(from loop: RunLoop, mode: RunLoop.Mode) {
        release { $0.loop === loop && $0.mode == mode }
    }

    private func release(_ isChosen: (Schedule) -> Bool) {
        let gone = lock.withLock {
            defer { state.schedules.removeAll(where: isChosen) }
            return state.schedules.filter(isChosen)
        }
        for schedule in gone { schedule.anchor.invalidate() }
    }

    // MARK: Events

    /// There is something new: bytes, room, or the program has read or written.
    func changed() {
        lock.withLock { state.hasChanged = true }
        signal()
    }

    /// Has the delegate called soon, on a run loop that the stream is scheduled on, if there is an event to report.
    private func signal() {
        let view = view()
        let schedules = lock.withLock { () -> [Schedule] in
            guard nextEvent(view) != nil, !state.isSignalled, !state.schedules.isEmpty else { return [] }
            state.isSignalled = true
            return state.schedules
        }
        for schedule in schedules { addCall(to: schedule) }
    }

    private func addCall(to schedule: Schedule) {
        let timer = Timer(timeInterval: 0, repeats: false) { [weak self] _ in self?.report() }
        schedule.loop.add(timer, forMode: schedule.mode)
    }

    /// Reports one event to the delegate, and is called again if there is another.
    private func report() {
        let view = view()
        let call = lock.withLock { () -> (any StreamDelegate, Stream, Stream.Event)? in
            guard state.isSignalled else { return nil }
            state.isSignalled = false
            guard !state.schedules.isEmpty, let event = nextEvent(view), let stream = state.stream else {
                return nil
            }
            switch event {
            case .openCompleted: state.hasReportedOpening = true
            case readyEvent: state.hasChanged = false
            default: state.hasReportedEnd = true
            }
            return state.delegate.map { ($0, stream, event) }
        }
        if let (delegate, stream, event) = call { delegate.stream(stream, handle: event) }
        signal()
    }

    /// The next event for the delegate; nil if there is none.
    private func nextEvent(_ view: StreamView) -> Stream.Event? {
        guard state.status == .open, !state.hasReportedEnd else { return nil }
        guard state.hasReportedOpening else { return .openCompleted }
        if view.isReady { return state.hasChanged ? readyEvent : nil }
        if view.error != nil { return .errorOccurred }
        return view.isAtEnd ? .endEncountered : nil
    }
}
