import ChildPrograms
import Glibc

/// A program in the foreground of a terminal of its own, and the shell that started it (`TerminalCrasher`).
/// Both end with the last reference.
final class Job {
    let terminal: PseudoTerminal
    /// The process ID of the program.
    let process: pid_t
    private let shell: Child

    /// Makes a crash end the program by its signal: Swift's backtrace takes seconds, and a sanitizer would exit
    /// instead.
    private static let environment = {
        let unwatched = ["segv", "abort", "sigill", "sigtrap", "sigbus", "sigfpe"]
            .map { "handle_\($0)=0" }.joined(separator: ":")
        return ["SWIFT_BACKTRACE": "enable=no", "ASAN_OPTIONS": unwatched, "TSAN_OPTIONS": unwatched]
    }()

    init(_ kind: String = "") throws {
        terminal = try PseudoTerminal()
        shell = try Child(
            "TerminalCrasher", ["launch", terminal.path, kind], environment: Self.environment, reads: true,
            patience: 300)
        process = pid_t(try shell.line(with: "process ").dropFirst("process ".count)) ?? 0
    }

    deinit {
        let hasEnded = shell.lines.contains { $0.hasPrefix("status ") || $0.hasPrefix("signal ") }
        if process > 0, !hasEnded { kill(process, SIGKILL) }
    }

    /// Waits until the shell reports that the program has stopped, or how it has ended.
    func awaitReport(_ report: String) throws { try shell.line { $0 == report } }

    /// Makes the shell continue the program.
    func resume() { shell.type("") }
}
