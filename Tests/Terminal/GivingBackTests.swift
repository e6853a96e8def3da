import Glibc
import Testing

@testable import Terminal

/// Tests that a program restores its terminal, however the program ends.
@Suite struct GivingBackTests {
    private static let modes = TerminalModes(mouse: true)

    /// Starts a program, waits until it draws, calls `end`, and checks the report and the state of the terminal.
    private func leaves(
        _ kind: String = "", _ report: String, saying last: String = "", _ end: (Job) -> Void
    ) throws {
        let job = try Job(kind)
        let before = try taken(job)
        end(job)
        #expect(
            try job.awaitReport(report.prefix { $0 != " " } + " ") == report.drop { $0 != " " }.dropFirst())
        job.terminal.readAll()
        let words = String(decoding: job.terminal.seen, as: UTF8.self)
        #expect(words.hasSuffix(Self.modes.giving + last), "\(words.debugDescription)")
        #expect(words.count(of: Self.modes.giving) == 1, "\(words.debugDescription)")
        #expect(job.terminal.settings == before)
    }

    /// Waits until the program has taken over the terminal and drawn; returns the settings that the terminal had
    /// before.
    private func taken(_ job: Job) throws -> [UInt32] {
        let usual = try PseudoTerminal().settings
        try job.terminal.awaitText("ready:80x24")
        #expect(job.terminal.settings != usual)
        return usual
    }

    @Test(
        "A crash restores the terminal, and keeps its exit status",
        arguments: [("a", SIGABRT), ("f", SIGILL), ("m", SIGSEGV)])
    func crashes(key: String, signal: Int32) throws {
        // On other processors, a trap raises another signal.
        let trap = isX86 ? SIGILL : SIGTRAP
        try leaves("", "signal \(signal == SIGILL ? trap : signal)") { $0.terminal.type(key) }
    }

    @Test(
        "A signal that ends the program restores the terminal, and keeps its exit status",
        arguments: [SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP])
    func signals(signal: Int32) throws { try leaves("", "signal \(signal)") { kill($0.process, signal) } }

    @Test("A program that returns or calls exit() restores the terminal", arguments: [("r", 0), ("e", 7)])
    func leaving(key: String, status: Int32) throws {
        try leaves("", "status \(status)") { $0.terminal.type(key) }
    }

    @Test("A program that waits for SIGTERM receives it, and restores the terminal itself")
    func patient() throws { try leaves("patient", "status 5") { kill($0.process, SIGTERM) } }

    @Test("An earlier crash handler is still called, after the terminal was restored")
    func chained() throws {
        try leaves("chained", "signal \(SIGSEGV)", saying: "chained") { $0.terminal.type("m") }
        try leaves("chained", "signal \(SIGSEGV)", saying: "chained") { kill($0.process, SIGSEGV) }
    }

    @Test("A signal that comes while another thread restores the terminal ends the program after that")
    func restoredByAnotherThread() throws {
        let job = try Job()
        let before = try taken(job)
        job.terminal.type("b")
        #expect(try job.awaitReport("signal ") == "\(SIGTERM)")
        #expect(job.terminal.settings == before)
    }

    @Test("While a signal ends the program, no other thread takes the terminal again")
    func continuedWhileEnding() throws {
        let job = try Job("continued")
        let before = try taken(job)
        kill(job.process, SIGSEGV)
        #expect(try job.awaitReport("signal ") == "\(SIGSEGV)")
        #expect(job.terminal.settings == before)
    }

    @Test(
        "A stopped program restores the terminal, and takes it again when it continues",
        arguments: [true, false])
    func stopping(isItsOwnWish: Bool) throws {
        let job = try Job()
        let before = try taken(job)
        let start = job.terminal.seen.count
        if isItsOwnWish { job.terminal.type("z") } else { kill(job.process, SIGTSTP) }
        #expect(try job.awaitReport("stopped ") == "\(SIGTSTP)")
        #expect(job.terminal.settings == before)
        let stopped = try job.terminal.awaitText(Self.modes.giving, since: start)
        job.terminal.resize(columns: 70, rows: 20)
        job.resume()
        let again = try job.terminal.awaitText(Self.modes.taking, since: stopped)
        try job.terminal.awaitText("ready:70x20", since: again)
        #expect(job.terminal.settings != before)
        job.terminal.type("r")
        #expect(try job.awaitReport("status ") == "0")
        #expect(job.terminal.settings == before)
    }

    @Test("After a stop without notice, the screen is painted again")
    func stoppedAtOnce() throws {
        let job = try Job()
        let before = try taken(job)
        kill(job.process, SIGSTOP)
        #expect(try job.awaitReport("stopped ") == "\(SIGSTOP)")
        // As a shell does when its job has stopped.
        var attributes = try PseudoTerminal().attributes
        tcsetattr(job.terminal.line, TCSANOW, &attributes)
        let start = job.terminal.seen.count
        job.resume()
        try job.terminal.awaitText("ready:80x24", since: start)
        #expect(job.terminal.settings != before)
        job.terminal.type("r")
        #expect(try job.awaitReport("status ") == "0")
        #expect(job.terminal.settings == before)
    }

    @Test("A changed window size is detected")
    func resizing() throws {
        let job = try Job()
        _ = try taken(job)
        job.terminal.resize(columns: 100, rows: 30)
        try job.terminal.awaitText("ready:100x30")
    }

    private var isX86: Bool {
        #if arch(x86_64)
            true
        #else
            false
        #endif
    }
}

extension String {
    /// The number of occurrences of `other`.
    fileprivate func count(of other: String) -> Int {
        var (count, rest) = (0, self[...])
        while let first = rest.firstIndex(where: { _ in true }) {
            if rest.hasPrefix(other) { count += 1 }
            rest = rest[rest.index(after: first)...]
        }
        return count
    }
}
