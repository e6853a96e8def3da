import Dispatch
import Glibc
import Synchronization
import Testing

@testable import Terminal

/// The tests run one after the other, because a process can have only one session at a time.
@Suite(.serialized) struct TerminalSessionTests {
    private static let traits = TerminalTraits(colours: .none, isUnicode: true)
    private static let modes = TerminalModes(mouse: true)

    /// The events of a session, for tests that wait for them.
    private final class EventLog: Sendable {
        private let events = Mutex<[TerminalEvent]>([])
        private let arrivals = DispatchSemaphore(value: 0)

        var all: [TerminalEvent] { events.withLock { $0 } }

        func append(_ event: TerminalEvent) {
            events.withLock { $0.append(event) }
            arrivals.signal()
        }

        /// Waits until there are `count` events; returns all events, or fewer than `count` after a timeout.
        func await(_ count: Int) -> [TerminalEvent] {
            while all.count < count, arrivals.wait(timeout: .now() + 300) == .success {}
            return all
        }
    }

    /// A session on a terminal of its own.
    private struct Window {
        let terminal: PseudoTerminal
        /// The settings of the terminal before the session.
        let before: [UInt32]
        let log = EventLog()
        let session: TerminalSession

        init(columns: Int = 80, rows: Int = 24, mouse: Bool = true) throws {
            terminal = try PseudoTerminal(columns: columns, rows: rows)
            before = terminal.settings
            session = try Self.session(on: terminal, log, mouse: mouse)
        }

        static func session(
            on terminal: PseudoTerminal, _ log: EventLog, mouse: Bool = true
        ) throws -> TerminalSession {
            try TerminalSession(
                input: terminal.line, output: terminal.line, mouse: mouse, traits: traits
            ) { log.append($0) }
        }

        /// Shows `text`, and waits until the terminal has got it; returns where its output ends.
        @discardableResult
        func show(_ text: String) throws -> Int {
            session.paint { canvas($0, text) }
            return try terminal.awaitText(text)
        }
    }

    private static func canvas(_ size: TerminalSize, _ text: String) -> Canvas {
        var canvas = Canvas(size)
        canvas.write(text, at: CellPosition(column: 0, row: 0))
        return canvas
    }

    private static func filled(_ size: TerminalSize, with character: Character) -> Canvas {
        var canvas = Canvas(size)
        canvas.fill(canvas.area, with: character)
        return canvas
    }

    @Test func `A terminal is set up for single keys, and is restored in every attribute`() throws {
        let window = try Window()
        let terminal = window.terminal
        let during = terminal.attributes
        #expect(during.c_lflag & tcflag_t(ICANON | ECHO | ISIG | IEXTEN) == 0)
        #expect(during.c_iflag & tcflag_t(ICRNL | IXON) == 0)
        #expect(terminal.settings != window.before)
        #expect(terminal.isBlocking, "whoever shares the terminal must not find it changed")
        try terminal.awaitText(Self.modes.taking)
        for _ in 0..<2 { window.session.restore() }
        #expect(terminal.settings == window.before)
        terminal.readAll()
        #expect(String(decoding: terminal.seen, as: UTF8.self) == Self.modes.taking + Self.modes.giving)
    }

    @Test func `The canvas is sent to the terminal, and its input is reported`() throws {
        let window = try Window(columns: 40, rows: 10, mouse: false)
        defer { window.session.restore() }
        #expect(window.session.size == TerminalSize(columns: 40, rows: 10))
        try window.show("Your turn")
        window.terminal.type("é\u{3}\u{1B}[<0;2;3M")
        #expect(
            window.log.await(3) == [
                .input(.character("é")), .input(.control("c")),
                .input(.mouse(MouseInput(.press(.left), at: CellPosition(column: 1, row: 2)))),
            ])
        window.terminal.type("\u{1B}")
        #expect(window.log.await(4).last == .input(.key(.escape)))
        let seen = String(decoding: window.terminal.seen, as: UTF8.self)
        #expect(!seen.contains("1006"), "no mouse was asked for")
    }

    @Test func `A changed size is reported, and all is painted again, without what does not fit`() throws {
        let window = try Window(columns: 40, rows: 10)
        defer { window.session.restore() }
        let start = try window.show("before")
        window.terminal.resize(columns: 4, rows: 2)
        kill(getpid(), SIGWINCH)
        #expect(window.log.await(1) == [.resized(TerminalSize(columns: 4, rows: 2))])
        #expect(window.session.size == TerminalSize(columns: 4, rows: 2))
        window.session.paint { _ in Self.canvas(TerminalSize(columns: 40, rows: 10), "before") }
        try window.terminal.awaitText("\u{1B}[2J\u{1B}[Hbefo\u{1B}", since: start)
    }

    @Test func `Ctrl-L paints everything anew, and does not reach the program`() throws {
        let window = try Window(columns: 40, rows: 10)
        defer { window.session.restore() }
        let start = try window.show("before")
        window.terminal.type("\u{0C}x")
        try window.terminal.awaitText("\u{1B}[2J\u{1B}[Hbefore", since: start)
        #expect(window.log.await(1) == [.input(.character("x"))])
    }

    @Test(arguments: [3_000, 32_767])
    func `On a terminal with an enormous size, only its upper left part is used`(_ side: Int) throws {
        let window = try Window(columns: side, rows: side)
        defer { window.session.restore() }
        try #require(window.session.size == TerminalSize.most)
        #expect(Canvas(TerminalSize(columns: side, rows: side)).size == TerminalSize.most)
        #expect(Canvas(TerminalSize(columns: side, rows: 2)).size == TerminalSize(columns: 640, rows: 2))
        window.session.paint { _ in Self.canvas(TerminalSize(columns: 40, rows: 2), "Your turn") }
        try window.terminal.awaitText("Your turn")
    }

    @Test func `A terminal that accepts no output blocks nobody, and later gets the last canvas`() throws {
        let window = try Window(columns: 200, rows: 50)
        let (session, terminal) = (window.session, window.terminal)
        defer { session.restore() }
        for letter in "abcdefghijklmnopqrstuvwxyz" {
            session.paint { Self.filled($0, with: letter) }
        }
        var last = Self.filled(session.size, with: "z")
        last.write("END", at: CellPosition(column: 197, row: 49))
        session.paint { [last] _ in last }
        try terminal.awaitText("END")
        var shown = TinyTerminal(session.size)
        shown.take(Array(terminal.seen.dropFirst(Self.modes.taking.utf8.count)))
        #expect(Difference.first(between: shown, and: last) == nil)
    }

    /// Two threads of a program change the content and paint. The picture of one must not hide what the other has
    /// changed.
    @Test func `The terminal gets the canvas that is newest when it accepts output`() throws {
        let window = try Window(columns: 400, rows: 250)
        defer { window.session.restore() }
        // More than a terminal accepts while nobody reads it.
        let hasBegun = DispatchSemaphore(value: 0)
        let age = Atomic(1)
        window.session.paint { size in
            defer { hasBegun.signal() }
            return Self.filled(size, with: "x")
        }
        hasBegun.wait()
        window.session.paint { size in Self.canvas(size, "picture \(age.load(ordering: .relaxed))") }
        age.store(2, ordering: .relaxed)
        try window.terminal.awaitText("picture 2")
        #expect(!String(decoding: window.terminal.seen, as: UTF8.self).contains("picture 1"))
    }

    @Test func `A terminal that accepts no output is still restored at once`() throws {
        let window = try Window(columns: 400, rows: 250)
        window.session.paint { Self.filled($0, with: "x") }
        try window.terminal.awaitText("xxx")
        window.session.restore()
        #expect(window.terminal.settings == window.before)
    }

    @Test func `A closed window is reported once`() throws {
        let window = try Window()
        window.terminal.closeWindow()
        #expect(window.log.await(1) == [.gone])
        window.session.paint { Self.canvas($0, "nobody") }
        kill(getpid(), SIGWINCH)
        window.session.restore()
        #expect(window.log.all == [.gone])
    }

    @Test func `The terminal may be restored on its own thread, and no event follows`() throws {
        let terminal = try PseudoTerminal()
        let before = terminal.settings
        let log = EventLog()
        // Set before anything is typed.
        nonisolated(unsafe) var session: TerminalSession?
        session = try TerminalSession(
            input: terminal.line, output: terminal.line, traits: Self.traits
        ) { event in
            session?.restore()
            log.append(event)
        }
        terminal.type("ab")
        #expect(log.await(1) == [.input(.character("a"))])
        session?.restore()
        #expect(log.all.count == 1)
        #expect(terminal.settings == before)
        session = nil
    }

    @Test func `An output that is no terminal, cannot draw or is taken is left unchanged`() throws {
        let null = open("/dev/null", O_RDWR)
        defer { close(null) }
        let terminal = try PseudoTerminal()
        let before = terminal.settings
        #expect(isTerminal(terminal.line) && !isTerminal(null))
        let dumb = TerminalTraits(environment: ["TERM": "dumb"])
        for (output, traits, failure) in [
            (null, Self.traits, TerminalFailure.noTerminal), (terminal.line, dumb, .dumb),
        ] {
            #expect(throws: failure) {
                _ = try TerminalSession(input: terminal.line, output: output, traits: traits) { _ in }
            }
            #expect(terminal.settings == before)
        }
        let session = try Window.session(on: terminal, EventLog())
        #expect(throws: TerminalFailure.takenAlready) { _ = try Window.session(on: terminal, EventLog()) }
        session.restore()
        #expect(terminal.settings == before)
        try Window.session(on: terminal, EventLog()).restore()
    }

    @Test func `Earlier signal handlers are restored`() async {
        // In a process of its own, in which no other test sets handlers.
        await #expect(processExitsWith: .success) {
            let before = TerminalSessionTests.handlers
            let window = try Window()
            #expect(TerminalSessionTests.handlers != before)
            window.session.restore()
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
