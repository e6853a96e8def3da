import ChildPrograms
import Glibc

/// A program in the foreground of a terminal of its own, and the shell that started it (`TerminalCrasher`).
/// Both end with the last reference.
final class Job {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let terminal: PseudoTerminal
    /// The process ID of the program.
    private(set) var process: pid_t = 0
    private var shell = pid_t()
    private let reports: Int32
    private let commands: Int32
    private var report = ""

    private static let timeout: Int32 = 300_000
    private static let program = BuiltPrograms.path(of: "TerminalCrasher")

    /// Makes a crash end the program by its signal: Swift's backtrace takes seconds, and a sanitizer would exit
    /// instead.
    private static let unwatched = ["segv", "abort", "sigill", "sigtrap", "sigbus", "sigfpe"]
        .map { "handle_\($0)=0" }.joined(separator: ":")

    init(_ kind: String = "") throws {
        terminal = try PseudoTerminal()
        var (output, input): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
        pipe(&output)
        pipe(&input)
        for descriptor in output + input { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        (reports, commands) = (output[0], input[1])
        defer {
            close(output[1])
            close(input[0])
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
        var attributes = Child.plainSignals()
        defer { posix_spawnattr_destroy(&attributes) }
        let arguments: [String] = [Self.program, "launch", terminal.path, kind]
        var strings = arguments.map { strdup($0) } + [nil]
        let variables = [
            "SWIFT_BACKTRACE=enable=no", "ASAN_OPTIONS=\(Self.unwatched)", "TSAN_OPTIONS=\(Self.unwatched)",
        ]
        var environment = variables.map { strdup($0) } + [nil]
        defer { for string in strings + environment { free(string) } }
        let status = posix_spawn(&shell, Self.program, &actions, &attributes, &strings, &environment)
        guard status == 0 else { throw Failure(description: "\(Self.program) does not start: \(status)") }
        process = pid_t(try awaitReport("process ")) ?? 0
    }

    deinit {
        if process > 0, report.contains("process") { kill(process, SIGKILL) }
        kill(shell, SIGKILL)
        waitpid(shell, nil, 0)
        close(reports)
        close(commands)
    }

    /// Waits for a line of the shell that begins with `prefix`; returns the rest of it.
    func awaitReport(_ prefix: String) throws -> String {
        while true {
            if let line = report.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                .last(where: { $0.hasPrefix(prefix) })
            {
                return String(line.dropFirst(prefix.count))
            }
            var watched = pollfd(fd: reports, events: Int16(POLLIN), revents: 0)
            var bytes = [UInt8](repeating: 0, count: 256)
            guard poll(&watched, 1, Self.timeout) == 1 else { throw Failure(description: "no \(prefix)") }
            let count = read(reports, &bytes, bytes.count)
            guard count > 0 else { throw Failure(description: "no \(prefix), but \(report)") }
            report += String(decoding: bytes.prefix(count), as: UTF8.self)
        }
    }

    /// Makes the shell continue the program.
    func resume() { _ = write(commands, "g", 1) }
}
