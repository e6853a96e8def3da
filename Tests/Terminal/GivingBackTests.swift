import Glibc
import Testing

@testable import Terminal

/// Tests that a program restores its terminal, however the program ends.
struct GivingBackTests {
    private static let modes = TerminalModes(mouse: true)

    enum Ending {
        case key(String)
        case signal(Int32)

        func happen(to job: Job) {
            switch self {
            case .key(let key): job.terminal.type(key)
            case .signal(let number): kill(job.process, number)
            }
        }
    }

    /// Starts a program and waits until it has taken over the terminal and drawn; returns the program, and the settings
    /// that the terminal had before.
    private func start(_ kind: String = "") throws -> (Job, settings: [UInt32]) {
        let usual = try PseudoTerminal().settings
        let job = try Job(kind)
        try job.terminal.awaitText("ready:80x24")
        #expect(job.terminal.settings != usual)
        return (job, usual)
    }

    #if arch(x86_64)
        private static let trap = SIGILL
    #else
        private static let trap = SIGTRAP
    #endif

    /// Kinds of programs, what ends them, and what the shell reports. The exit status is that of any program.
    private static let endings: [(String, Ending, String)] = [
        // It crashes, returns, or calls exit().
        ("", .key("a"), "signal \(SIGABRT)"), ("", .key("f"), "signal \(trap)"),
        ("", .key("m"), "signal \(SIGSEGV)"), ("", .key("r"), "status 0"), ("", .key("e"), "status 7"),
        // It waits for the signal, and restores the terminal itself.
        ("patient", .signal(SIGTERM), "status 5"),
        // It has a handler of its own for crashes, which is called after the terminal was restored.
        ("chained", .key("m"), "signal \(SIGSEGV)"), ("chained", .signal(SIGSEGV), "signal \(SIGSEGV)"),
    ]

    private static let signals: [(String, Ending, String)] = [
        SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP,
    ].map { ("", .signal($0), "signal \($0)") }

    @Test(arguments: endings + signals)
    func `A crash, a signal or an exit restores the terminal, and keeps its exit status`(
        _ kind: String, _ ending: Ending, _ report: String
    ) throws {
        let (job, before) = try start(kind)
        ending.happen(to: job)
        try job.awaitReport(report)
        job.terminal.readAll()
        let words = String(decoding: job.terminal.seen, as: UTF8.self)
        let last = Self.modes.giving + (kind == "chained" ? kind : "")
        #expect(words.hasSuffix(last), "\(words.debugDescription)")
        #expect(words.ranges(of: Self.modes.giving).count == 1, "\(words.debugDescription)")
        #expect(job.terminal.settings == before)
    }

    @Test func `A signal that comes while another thread restores the terminal waits for that`() throws {
        let (job, before) = try start()
        job.terminal.type("b")
        try job.awaitReport("signal \(SIGTERM)")
        #expect(job.terminal.settings == before)
    }

    @Test func `While a signal ends the program, no other thread takes the terminal again`() throws {
        let (job, before) = try start("continued")
        kill(job.process, SIGSEGV)
        try job.awaitReport("signal \(SIGSEGV)")
        #expect(job.terminal.settings == before)
    }

    @Test(arguments: [Ending.key("z"), .signal(SIGTSTP)])
    func `A stopped program restores the terminal, and takes it again when it continues`(
        _ stop: Ending
    ) throws {
        let (job, before) = try start()
        let start = job.terminal.seen.count
        stop.happen(to: job)
        try job.awaitReport("stopped \(SIGTSTP)")
        #expect(job.terminal.settings == before)
        let stopped = try job.terminal.awaitText(Self.modes.giving, since: start)
        job.terminal.resize(columns: 70, rows: 20)
        job.resume()
        let again = try job.terminal.awaitText(Self.modes.taking, since: stopped)
        try job.terminal.awaitText("ready:70x20", since: again)
        #expect(job.terminal.settings != before)
        // It is also told of a size that changes while it runs.
        job.terminal.resize(columns: 100, rows: 30)
        try job.terminal.awaitText("ready:100x30", since: again)
        job.terminal.type("r")
        try job.awaitReport("status 0")
        #expect(job.terminal.settings == before)
    }

    @Test func `After a stop without notice, the screen is painted again`() throws {
        let (job, before) = try start()
        kill(job.process, SIGSTOP)
        try job.awaitReport("stopped \(SIGSTOP)")
        // As a shell does when its job has stopped.
        var attributes = try PseudoTerminal().attributes
        tcsetattr(job.terminal.line, TCSANOW, &attributes)
        let start = job.terminal.seen.count
        job.resume()
        try job.terminal.awaitText("ready:80x24", since: start)
        #expect(job.terminal.settings != before)
        job.terminal.type("r")
        try job.awaitReport("status 0")
        #expect(job.terminal.settings == before)
    }
}
