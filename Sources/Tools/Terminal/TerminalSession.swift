import CTerminal
import Glibc
import NighCore
import NighSystem

/// A terminal that the program has taken over: it reports all keys as they are pressed, and shows a ``Canvas``.
///
/// A program creates a session when it begins to draw, asks for new paintings from any thread, and calls ``restore()``
/// when it leaves. Painting never blocks the caller: a thread of the session reads and writes. The terminal is given
/// back whatever happens, also at `exit()` and in crashes. Only `_exit()` and SIGKILL leave no time for it. A process
/// has one session at a time.
///
/// SIGINT, SIGTERM, SIGHUP and SIGQUIT end the process as usual, but the terminal is given back first. If the program
/// handles one of these signals, or waits for it with `sigwait`, the program has to call ``restore()`` itself. Ctrl-C
/// and Ctrl-Z are keys. Ctrl-L is none: it paints everything anew, after another program has written to the terminal.
///
/// `@unchecked Sendable`: the lock guards all state that several threads use; only the session's thread uses the rest.
public final class TerminalSession: @unchecked Sendable {
    private let descriptors: TerminalDescriptors
    private let thread = LoopThread()
    private let handler: @Sendable (TerminalEvent) -> Void

    private let lock = Lock()
    private var currentSize: TerminalSize
    /// Draws the content that the terminal should show. `isStale` says whether a painting was requested since the last
    /// one.
    private var draw: (@Sendable (TerminalSize) -> Canvas)?
    private var isStale = false
    private var isLeaving = false

    private var painter: Painter
    private var decoder = KeyDecoder()
    private var unwritten: ArraySlice<UInt8> = []
    private var isGone = false
    /// When a lone ESC counts as the key.
    private var escapeDeadline = Moment.never

    /// The wait for the rest of a key's sequence: longer than its pauses on a slow line, and too short to be noticed.
    private static let escapeTimeout = Moment.Span(nanoseconds: 50_000_000)
    /// The most bytes of one read, so that the thread does other work in between when much input comes.
    private static let readLimit = 4_096

    /// Takes over the terminal that `input` and `output` lead to. The descriptors stay the caller's, and do not change.
    ///
    /// `handler` is called on a thread of the session, with one event after the other. It must not wait for a thread
    /// that calls ``restore()``. With `mouse`, the terminal reports clicks and movements, and people select text with
    /// Shift held down. Throws if there is no terminal that can be drawn on.
    public init(
        input: Int32 = STDIN_FILENO, output: Int32 = STDOUT_FILENO, mouse: Bool = true,
        traits: TerminalTraits = .ofThisProcess, handler: @escaping @Sendable (TerminalEvent) -> Void
    ) throws(TerminalFailure) {
        guard isTerminal(input), isTerminal(output) else { throw .noTerminal }
        guard !traits.isDumb else { throw .dumb }
        self.handler = handler
        descriptors = try TerminalDescriptors(input: input, output: output)
        currentSize = descriptors.size
        painter = Painter(traits)
        var plan = try descriptors.plan(TerminalModes(mouse: mouse))
        guard cterminal_prepare(&plan) else { throw .takenAlready }
        let status = cterminal_take()
        guard status == 0 else {
            cterminal_forget()
            throw .system("the terminal cannot be set up", status)
        }
        do throws(NighError) {
            try thread.start { [self] in run() }
        } catch {
            cterminal_give_back()
            cterminal_forget()
            throw .system("there is no thread for the terminal", EAGAIN)
        }
    }

    /// The number of cells of the terminal. Any thread may read it.
    public var size: TerminalSize { lock.withLock { currentSize } }

    /// Asks for a new painting by `draw`, as soon as the terminal accepts one.
    ///
    /// If calls come faster than the terminal accepts paintings, only the last one is drawn. Content that does not fit
    /// is cut off. Any thread may call this; it returns at once.
    ///
    /// - Parameter draw: called on the session's thread with the terminal's size, when the terminal accepts a painting,
    ///   and again after the program was stopped. If it draws the state at the time of the call, an older picture never
    ///   follows a newer one, however many threads paint. It must not wait for a thread that calls ``restore()``.
    public func paint(_ draw: @escaping @Sendable (TerminalSize) -> Canvas) {
        let mustWake = lock.withLock {
            self.draw = draw
            defer { isStale = true }
            return !isStale
        }
        if mustWake { descriptors.wake() }
    }

    /// Stops the program and the others in its pipeline, as Ctrl-Z does elsewhere.
    ///
    /// Gives the terminal back before that, and takes it again when they continue. The last painting then comes back by
    /// itself. Any thread may call this.
    public func suspend() { kill(0, SIGTSTP) }

    /// Gives the terminal back.
    ///
    /// When it returns, nothing is read or written any more and no event comes. If the session's own thread calls it,
    /// the call in progress is the last one. Any thread may call this, any number of times.
    public func restore() {
        let isFirst = lock.withLock {
            defer { isLeaving = true }
            return !isLeaving
        }
        if isFirst {
            cterminal_give_back()
            descriptors.wake()
        }
        thread.join()
        guard isFirst else { return }
        // The thread may just have taken the terminal again, after the process was stopped.
        cterminal_give_back()
        cterminal_forget()
    }

    // MARK: The thread

    private func run() {
        var signals = sigset_t()
        sigemptyset(&signals)
        // The signals of job control act on this thread as on any other.
        for signal in [SIGWINCH, SIGCONT, SIGTSTP, SIGTTOU, SIGTTIN] { sigaddset(&signals, signal) }
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        while !hasToLeave {
            beginPainting()
            waitForWork()
        }
    }

    private var hasToLeave: Bool { lock.withLock { isLeaving } }

    /// Begins to write the requested painting, unless another one is still being written.
    private func beginPainting() {
        guard unwritten.isEmpty, !isGone, cterminal_is_taken() else { return }
        let (draw, size) = lock.withLock {
            defer { isStale = false }
            return (isStale ? self.draw : nil, currentSize)
        }
        guard let draw else { return }
        unwritten = painter.paint(draw(size).cut(to: size))[...]
        write()
    }

    /// Waits until there is something to do, and does it.
    private func waitForWork() {
        let isOurs = !isGone && cterminal_is_taken()
        var watched = [
            pollfd(fd: descriptors.notices, events: Int16(POLLIN), revents: 0),
            pollfd(fd: isOurs ? descriptors.input : -1, events: Int16(POLLIN), revents: 0),
            pollfd(
                fd: isOurs && !unwritten.isEmpty ? descriptors.output : -1, events: Int16(POLLOUT), revents: 0
            ),
        ]
        poll(&watched, nfds_t(watched.count), pollTimeout)
        if watched[0].revents != 0 {
            for notice in descriptors.takeNotices() where !hasToLeave { handle(notice) }
        }
        if watched[2].revents != 0, !hasToLeave { write() }
        if watched[1].revents != 0, !hasToLeave { read() }
        if escapeDeadline <= LoopThread.now, !hasToLeave { report(decoder.flush()) }
    }

    private var pollTimeout: Int32 {
        guard escapeDeadline != .never else { return -1 }
        let left = (escapeDeadline - LoopThread.now).nanoseconds
        return Int32(min(max((left + 999_999) / 1_000_000, 0), 1_000))
    }

    private func handle(_ notice: TerminalDescriptors.Notice) {
        switch notice {
        case .wake: break
        case .resized: measure()
        case .continued: takeAgain()
        case .stopRequested:
            cterminal_give_back()
            cterminal_stop_process()
            if !hasToLeave { takeAgain() }
        }
    }

    private func measure() {
        let size = descriptors.size
        let hasChanged = lock.withLock {
            defer { currentSize = size }
            return currentSize != size
        }
        guard hasChanged, !isGone else { return }
        painter.forget()
        handler(.resized(size))
    }

    /// Takes the terminal again after the process was stopped. Others may have changed anything about the terminal.
    private func takeAgain() {
        unwritten = []
        guard descriptors.isInForeground else { return cterminal_leave_alone() }
        guard cterminal_take() == 0 else { return reportGone() }
        paintAnew()
        measure()
    }

    /// Paints everything, whatever the terminal shows.
    private func paintAnew() {
        painter.forget()
        lock.withLock { isStale = draw != nil }
    }

    private func reportGone() {
        guard !isGone else { return }
        isGone = true
        unwritten = []
        escapeDeadline = .never
        handler(.gone)
    }

    // MARK: Bytes

    private func read() {
        var bytes = [UInt8](repeating: 0, count: Self.readLimit)
        let count = Glibc.read(descriptors.input, &bytes, bytes.count)
        if count > 0 { return report(decoder.feed(bytes.prefix(count))) }
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        reportGone()
    }

    private func report(_ inputs: [Input]) {
        escapeDeadline = decoder.isUndecided ? LoopThread.now + Self.escapeTimeout : .never
        for input in inputs where !hasToLeave {
            if input == .control("l") { paintAnew() } else { handler(.input(input)) }
        }
    }

    private func write() {
        while !unwritten.isEmpty {
            let count = unwritten.withUnsafeBufferPointer { cterminal_write($0.baseAddress, $0.count) }
            if count > 0 {
                unwritten = unwritten.dropFirst(count)
            } else if count < 0, errno == EINTR {
                continue
            } else if count < 0, errno == EAGAIN {
                return
            } else if count < 0, errno == ECANCELED {
                unwritten = []
            } else {
                return reportGone()
            }
        }
    }
}
