import Dispatch
import Glibc
import Synchronization
import Testing

@testable import Terminal

/// The tests run one after the other, because a process can have only one session at a time.
@Suite(.serialized) struct TerminalSessionTests {
    private static let traits = TerminalTraits(colours: .none, isUnicode: true)
    private static let modes = TerminalModes(mouse: true)

    private func session(
        on terminal: PseudoTerminal, _ log: EventLog, mouse: Bool = true
    ) throws -> TerminalSession {
        try TerminalSession(input: terminal.line, output: terminal.line, mouse: mouse, traits: Self.traits) {
            log.append($0)
        }
    }

    /// A session that has shown `text`, and where in the output of the terminal the text ends.
    private func session(
        on terminal: PseudoTerminal, _ log: EventLog, showing text: String
    ) throws -> (TerminalSession, end: Int) {
        let session = try session(on: terminal, log)
        session.paint { Self.canvas($0, text) }
        return (session, try terminal.awaitText(text))
    }

    private static func canvas(_ size: TerminalSize, _ text: String) -> Canvas {
        var canvas = Canvas(size)
        canvas.write(text, at: CellPosition(column: 0, row: 0))
        return canvas
    }

    @Test("A terminal is set up for single keys, and is restored in every attribute")
    func attributes() throws {
        let terminal = try PseudoTerminal()
        let before = terminal.settings
        let session = try session(on: terminal, EventLog())
        let during = terminal.attributes
        #expect(during.c_lflag & tcflag_t(ICANON | ECHO | ISIG | IEXTEN) == 0)
        #expect(during.c_iflag & tcflag_t(ICRNL | IXON) == 0)
        #expect(terminal.settings != before)
        #expect(terminal.isBlocking, "whoever shares the terminal must not find it changed")
        try terminal.awaitText(Self.modes.taking)
        session.restore()
        session.restore()
        #expect(terminal.settings == before)
        terminal.readAll()
        #expect(String(decoding: terminal.seen, as: UTF8.self) == Self.modes.taking + Self.modes.giving)
    }

    @Test("The canvas is sent to the terminal, and its input is reported")
    func bothWays() throws {
        let terminal = try PseudoTerminal(columns: 40, rows: 10)
        let log = EventLog()
        let session = try session(on: terminal, log, mouse: false)
        defer { session.restore() }
        #expect(session.size == TerminalSize(columns: 40, rows: 10))
        session.paint { Self.canvas($0, "Your turn") }
        try terminal.awaitText("Your turn")
        terminal.type("é\u{3}\u{1B}[<0;2;3M")
        #expect(
            log.await(3) == [
                .input(.character("é")), .input(.control("c")),
                .input(.mouse(MouseInput(.press(.left), at: CellPosition(column: 1, row: 2)))),
            ])
        terminal.type("\u{1B}")
        #expect(log.await(4).last == .input(.key(.escape)))
        #expect(!String(decoding: terminal.seen, as: UTF8.self).contains("1006"), "no mouse was asked for")
    }

    @Test("A changed size is reported, and the screen is painted again; what does not fit is cut off")
    func resizing() throws {
        let (terminal, log) = (try PseudoTerminal(columns: 40, rows: 10), EventLog())
        let (session, start) = try session(on: terminal, log, showing: "before")
        defer { session.restore() }
        terminal.resize(columns: 4, rows: 2)
        kill(getpid(), SIGWINCH)
        #expect(log.await(1) == [.resized(TerminalSize(columns: 4, rows: 2))])
        #expect(session.size == TerminalSize(columns: 4, rows: 2))
        session.paint { _ in Self.canvas(TerminalSize(columns: 40, rows: 10), "before") }
        try terminal.awaitText("\u{1B}[2J\u{1B}[Hbefo\u{1B}", since: start)
    }

    @Test("Ctrl-L paints everything anew, and does not reach the program")
    func paintingAnew() throws {
        let (terminal, log) = (try PseudoTerminal(columns: 40, rows: 10), EventLog())
        let (session, start) = try session(on: terminal, log, showing: "before")
        defer { session.restore() }
        terminal.type("\u{0C}x")
        try terminal.awaitText("\u{1B}[2J\u{1B}[Hbefore", since: start)
        #expect(log.await(1) == [.input(.character("x"))])
    }

    @Test(
        "On a terminal with an enormous size, only its upper left part is used",
        arguments: [3_000, 32_767])
    func enormous(side: Int) throws {
        let terminal = try PseudoTerminal(columns: side, rows: side)
        let session = try session(on: terminal, EventLog())
        defer { session.restore() }
        try #require(session.size == TerminalSize.most)
        #expect(Canvas(TerminalSize(columns: side, rows: side)).size == TerminalSize.most)
        #expect(Canvas(TerminalSize(columns: side, rows: 2)).size == TerminalSize(columns: 640, rows: 2))
        session.paint { _ in Self.canvas(TerminalSize(columns: 40, rows: 2), "Your turn") }
        try terminal.awaitText("Your turn")
    }

    @Test("A terminal that accepts no output blocks nobody, and later gets the last canvas completely")
    func slowTerminal() throws {
        let terminal = try PseudoTerminal(columns: 200, rows: 50)
        let session = try session(on: terminal, EventLog())
        defer { session.restore() }
        var canvas = Canvas(session.size)
        for letter in "abcdefghijklmnopqrstuvwxyz" {
            canvas.fill(canvas.area, with: letter)
            session.paint { [canvas] _ in canvas }
        }
        canvas.write("END", at: CellPosition(column: 197, row: 49))
        session.paint { [canvas] _ in canvas }
        try terminal.awaitText("END")
        var shown = TinyTerminal(session.size)
        let text = String(decoding: terminal.seen.dropFirst(Self.modes.taking.utf8.count), as: UTF8.self)
        shown.take(Array(text.utf8))
        #expect(Difference.first(between: shown, and: canvas) == nil)
    }

    /// Two threads of a program change the content and paint. The picture of one must not hide what the other has
    /// changed.
    @Test("The terminal gets the newest canvas when it accepts output, not the one that was painted before")
    func newest() throws {
        let terminal = try PseudoTerminal(columns: 400, rows: 250)
        let session = try session(on: terminal, EventLog())
        defer { session.restore() }
        // More than a terminal accepts while nobody reads it.
        let hasBegun = DispatchSemaphore(value: 0)
        let age = Atomic(1)
        session.paint { size in
            var canvas = Canvas(size)
            canvas.fill(canvas.area, with: "x")
            hasBegun.signal()
            return canvas
        }
        hasBegun.wait()
        session.paint { size in Self.canvas(size, "picture \(age.load(ordering: .relaxed))") }
        age.store(2, ordering: .relaxed)
        try terminal.awaitText("picture 2")
        #expect(!String(decoding: terminal.seen, as: UTF8.self).contains("picture 1"))
    }

    @Test("A terminal that accepts no output is still restored at once")
    func stalledTerminal() throws {
        let terminal = try PseudoTerminal(columns: 400, rows: 250)
        let before = terminal.settings
        let session = try session(on: terminal, EventLog())
        var canvas = Canvas(session.size)
        canvas.fill(canvas.area, with: "x")
        session.paint { [canvas] _ in canvas }
        try terminal.awaitText("xxx")
        session.restore()
        #expect(terminal.settings == before)
    }

    @Test("A closed window is reported once")
    func hangUp() throws {
        let terminal = try PseudoTerminal()
        let log = EventLog()
        let session = try session(on: terminal, log)
        terminal.closeWindow()
        #expect(log.await(1) == [.gone])
        session.paint { Self.canvas($0, "nobody") }
        kill(getpid(), SIGWINCH)
        session.restore()
        #expect(log.all == [.gone])
    }

    @Test("The terminal may be restored on its own thread, and no event follows")
    func restoringInside() throws {
        let terminal = try PseudoTerminal()
        let before = terminal.settings
        let (log, holder) = (EventLog(), SessionHolder())
        let session = try TerminalSession(
            input: terminal.line, output: terminal.line, traits: Self.traits
        ) { event in
            holder.session?.restore()
            log.append(event)
        }
        holder.session = session
        terminal.type("ab")
        #expect(log.await(1) == [.input(.character("a"))])
        session.restore()
        #expect(log.all.count == 1)
        #expect(terminal.settings == before)
        holder.session = nil
    }

    @Test("An output that is no terminal, cannot draw or is taken is refused, and left unchanged")
    func refusalsSurviveARoundTrip() throws {
        let null = open("/dev/null", O_RDWR)
        defer { close(null) }
        let terminal = try PseudoTerminal()
        let before = terminal.settings
        #expect(isTerminal(terminal.line))
        #expect(!isTerminal(null))
        #expect(throws: TerminalFailure.noTerminal) {
            _ = try TerminalSession(input: terminal.line, output: null, traits: Self.traits) { _ in }
        }
        #expect(throws: TerminalFailure.dumb) {
            let dumb = TerminalTraits(environment: ["TERM": "dumb"])
            _ = try TerminalSession(input: terminal.line, output: terminal.line, traits: dumb) { _ in }
        }
        #expect(terminal.settings == before)
        let log = EventLog()
        let session = try session(on: terminal, log)
        #expect(throws: TerminalFailure.takenAlready) { _ = try self.session(on: terminal, log) }
        session.restore()
        #expect(terminal.settings == before)
        try self.session(on: terminal, log).restore()
    }

    @Test("Earlier signal handlers are restored")
    func handlers() async {
        // In a process of its own, in which no other test sets handlers.
        await #expect(processExitsWith: .success) {
            let terminal = try PseudoTerminal()
            let before = TerminalSessionTests.handlers
            let session = try TerminalSessionTests().session(on: terminal, EventLog())
            #expect(TerminalSessionTests.handlers != before)
            session.restore()
            #expect(TerminalSessionTests.handlers == before)
        }
    }

    private static var handlers: [UInt] {
        [SIGSEGV, SIGILL, SIGABRT, SIGHUP, SIGINT, SIGTERM, SIGWINCH, SIGCONT, SIGTSTP].map { number in
            var action = sigaction()
            sigaction(number, nil, &action)
            return withUnsafeBytes(of: &action.__sigaction_handler) { $0.load(as: UInt.self) }
        }
    }
}

/// Holds a session for its own handler.
///
/// `@unchecked Sendable`: set before anything is typed.
private final class SessionHolder: @unchecked Sendable {
    var session: TerminalSession?
}
