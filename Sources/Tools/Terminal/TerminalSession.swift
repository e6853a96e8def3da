import CTerminal
import Glibc
import NighCore

/// A terminal taken over: all keys come here as they are pressed, and a ``Canvas`` is what it shows.
///
/// A program makes one when it begins to draw, asks from any thread to be drawn anew, and calls ``restore()`` when it leaves. It never blocks
/// the caller: a thread of its own reads and writes. The terminal is given back whatever happens, at `exit()` and at crashes too; only
/// `_exit()` and SIGKILL leave no time for it. There is one in a process at a time.
///
/// SIGINT, SIGTERM, SIGHUP and SIGQUIT end the process by themselves, with the terminal given back first; where the program handles them
/// or waits for them with `sigwait`, they are the program's, and it is to call ``restore()``. Ctrl-C and Ctrl-Z are keys.
///
/// `@unchecked Sendable`: what several threads touch is guarded by the lock, the rest is the thread's alone.
public final class TerminalSession: @unchecked Sendable {
    private let line: TerminalLine
    private let thread = LoopThread()
    private let handler: @Sendable (TerminalEvent) -> Void

    private let lock = Lock()
    private var currentSize: TerminalSize
    /// Draws what is to be shown, and whether that was asked for since it was last drawn.
    private var draw: (@Sendable (TerminalSize) -> Canvas)?
    private var isStale = false
    private var isLeaving = false

    private var painter: Painter
    private var decoder = KeyDecoder()
    private var unwritten: ArraySlice<UInt8> = []
    private var isGone = false
    /// When a lone ESC is taken for the key.
    private var decision = Moment.never

    /// Longer than the parts of one key's sequence are apart on a slow line, shorter than anybody minds.
    private static let patience = Moment.Span(nanoseconds: 50_000_000)
    /// Of a flood of input the thread sees to other things in between.
    private static let mostRead = 4_096

    /// Takes the terminal over that `input` and `output` lead to; the descriptors stay the caller's, and as they are. `handler` is called on
    /// a thread of the session, for one event after the other; it must not wait for whoever calls ``restore()``.
    ///
    /// With `mouse`, the terminal reports clicks and movements, and people select text with Shift held down. Fails where there is no
    /// terminal that can be drawn on.
    public init(
        input: Int32 = STDIN_FILENO, output: Int32 = STDOUT_FILENO, mouse: Bool = true,
        traits: TerminalTraits = .ofThisProcess, handler: @escaping @Sendable (TerminalEvent) -> Void
    ) throws(TerminalFailure) {
        guard isTerminal(input), isTerminal(output) else { throw .noTerminal }
        guard !traits.isDumb else { throw .dumb }
        self.handler = handler
        line = try TerminalLine(input: input, output: output)
        currentSize = line.size
        painter = Painter(traits)
        var plan = try line.plan(TerminalModes(mouse: mouse))
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

    /// How many cells the terminal has. Any thread.
    public var size: TerminalSize { lock.withLock { currentSize } }

    /// Has the terminal show what `draw` draws, as soon as it can: of several that come faster than the terminal takes them, the last
    /// one. What does not fit is cut off. Any thread; returns at once.
    ///
    /// - Parameter draw: called with the terminal's size on the session's thread, when the terminal takes what is drawn, and again after the
    ///   program was stopped. So whoever draws what is true by then never shows an older picture after a newer one, from however many
    ///   threads it is painted. It must not wait for whoever calls ``restore()``.
    public func paint(_ draw: @escaping @Sendable (TerminalSize) -> Canvas) {
        let mustWake = lock.withLock {
            self.draw = draw
            defer { isStale = true }
            return !isStale
        }
        if mustWake { line.wake() }
    }

    /// Stops the program and those it is in a pipeline with, as Ctrl-Z does elsewhere: gives the terminal back before and takes it again when
    /// they go on. Any thread; what was painted last comes back by itself.
    public func suspend() { kill(0, SIGTSTP) }

    /// Gives the terminal back. When it returns nothing is read or written any more and no event comes, except that on the session's own
    /// thread the call in progress is the last. Any thread, any number of times.
    public func restore() {
        let isFirst = lock.withLock {
            defer { isLeaving = true }
            return !isLeaving
        }
        if isFirst {
            cterminal_give_back()
            line.wake()
        }
        thread.join()
        guard isFirst else { return }
        // The thread may just have taken it again, after having been stopped.
        cterminal_give_back()
        cterminal_forget()
    }

    // MARK: The thread

    private func run() {
        var signals = sigset_t()
        sigemptyset(&signals)
        // Those of job control do to this thread what they do to any other.
        for signal in [SIGWINCH, SIGCONT, SIGTSTP, SIGTTOU, SIGTTIN] { sigaddset(&signals, signal) }
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        while !hasToLeave {
            compose()
            attend()
        }
    }

    private var hasToLeave: Bool { lock.withLock { isLeaving } }

    /// Begins to write what is wanted, unless something else is being written.
    private func compose() {
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
    private func attend() {
        let isOurs = !isGone && cterminal_is_taken()
        var watched = [
            pollfd(fd: line.notices, events: Int16(POLLIN), revents: 0),
            pollfd(fd: isOurs ? line.input : -1, events: Int16(POLLIN), revents: 0),
            pollfd(fd: isOurs && !unwritten.isEmpty ? line.output : -1, events: Int16(POLLOUT), revents: 0),
        ]
        poll(&watched, nfds_t(watched.count), untilDecision)
        if watched[0].revents != 0 {
            for notice in line.takeNotices() where !hasToLeave { take(notice) }
        }
        if watched[2].revents != 0, !hasToLeave { write() }
        if watched[1].revents != 0, !hasToLeave { read() }
        if decision <= LoopThread.now, !hasToLeave { give(decoder.flush()) }
    }

    private var untilDecision: Int32 {
        guard decision != .never else { return -1 }
        let left = (decision - LoopThread.now).nanoseconds
        return Int32(min(max((left + 999_999) / 1_000_000, 0), 1_000))
    }

    private func take(_ notice: TerminalLine.Notice) {
        switch notice {
        case .wake: break
        case .resized: measure()
        case .goesOn: takeAgain()
        case .stops:
            cterminal_give_back()
            cterminal_stop_process()
            if !hasToLeave { takeAgain() }
        }
    }

    private func measure() {
        let size = line.size
        let hasChanged = lock.withLock {
            defer { currentSize = size }
            return currentSize != size
        }
        guard hasChanged, !isGone else { return }
        painter.forget()
        handler(.resized(size))
    }

    /// After the process was stopped: others may have done anything to the terminal.
    private func takeAgain() {
        unwritten = []
        guard line.isInForeground else { return cterminal_leave_alone() }
        guard cterminal_take() == 0 else { return leaveGone() }
        painter.forget()
        lock.withLock { isStale = draw != nil }
        measure()
    }

    private func leaveGone() {
        guard !isGone else { return }
        isGone = true
        unwritten = []
        decision = .never
        handler(.gone)
    }

    // MARK: Bytes

    private func read() {
        var bytes = [UInt8](repeating: 0, count: Self.mostRead)
        let count = Glibc.read(line.input, &bytes, bytes.count)
        if count > 0 { return give(decoder.feed(bytes.prefix(count))) }
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        leaveGone()
    }

    private func give(_ inputs: [Input]) {
        decision = decoder.isUndecided ? LoopThread.now + Self.patience : .never
        for input in inputs where !hasToLeave { handler(.input(input)) }
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
                return leaveGone()
            }
        }
    }
}
