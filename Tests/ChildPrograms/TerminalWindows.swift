import Glibc

/// Terminals of 80 × 24 in which a program of this package runs, by a tmux server of their own: what a person sees, as text. It ends with its last
/// reference, and with this process.
package final class TerminalWindows {
    package struct Failure: Error, CustomStringConvertible { package let description: String }

    /// For how long anything is waited for.
    private static let patience: UInt64 = 40
    private let socket: String
    private let server: pid_t

    private let program: String

    /// Windows for `program`.
    package init(of program: String = "fourinarow") throws {
        self.program = BuiltPrograms.path(of: program)
        socket = "/tmp/nigh-windows-\(getpid())-\(UInt32.random(in: .min ... .max))"
        // A server without windows would go.
        let settings = socket + ".conf"
        try Self.write("set -g exit-empty off\n", to: settings)
        // In the foreground, so that it has a process id, and ends with this process whatever becomes of it.
        server = try Self.spawn([
            "setpriv", "--pdeathsig", "KILL", "tmux", "-D", "-S", socket, "-f", settings,
        ])
        try wait("the server is there") { access(socket, F_OK) == 0 }
    }

    deinit {
        // Its windows get SIGHUP, and what runs in them.
        _ = try? tmux(["kill-server"])
        kill(server, SIGKILL)
        waitpid(server, nil, 0)
        unlink(socket)
        unlink(socket + ".conf")
    }

    /// Opens a window of that name, in which a shell runs the program and then says how it ended.
    package func open(_ name: String, _ arguments: String, environment: String = "LANG=C.UTF-8") throws {
        let command =
            "env TERM=screen-256color NO_COLOR=1 \(environment) \(program) \(arguments); echo ended with $?; cat"
        try tmux(["new-session", "-d", "-s", name, "-x", "80", "-y", "24", command])
    }

    /// What the window shows, without blanks at the ends of lines, and with times made alike.
    package func text(_ name: String) throws -> String {
        let captured = try tmux(["capture-pane", "-p", "-t", name])
        var lines = captured.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            String(line.reversed().drop { $0 == " " }.reversed())
        }
        while lines.last == "" { lines.removeLast() }
        return lines.joined(separator: "\n")
            .replacing(#/there and back in [0-9.]+ m?s/#, with: "there and back in # ms")
    }

    package func press(_ name: String, _ keys: String...) throws {
        try tmux(["send-keys", "-t", name] + keys)
    }

    package func resize(_ name: String, _ columns: Int, _ rows: Int) throws {
        try tmux(["resize-window", "-t", name, "-x", "\(columns)", "-y", "\(rows)"])
    }

    /// Looks again until the window shows that: on screens nothing is told.
    package func wait(_ name: String, shows words: String) throws {
        do {
            try wait(words) { try text(name).contains(words) }
        } catch {
            throw Failure(description: "\(name) does not show \"\(words)\" but:\n\(try text(name))")
        }
    }

    /// Looks again until that is so: a screen may be caught while it is being drawn.
    package func wait(_ what: String, until condition: () throws -> Bool) throws {
        let end = nanoseconds() + Self.patience * 1_000_000_000
        while nanoseconds() < end {
            if try condition() { return }
            usleep(20_000)
        }
        throw Failure(description: "in vain: \(what)")
    }

    private func nanoseconds() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    private static func write(_ text: String, to path: String) throws {
        guard let file = fopen(path, "wx") else { throw Failure(description: "\(path) cannot be written") }
        fputs(text, file)
        fclose(file)
    }

    @discardableResult
    private func tmux(_ arguments: [String]) throws -> String {
        // A file and no pipe, whose other end every program might inherit that another test starts at this moment.
        let path = socket + ".out"
        let file = Glibc.open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Failure(description: "\(path) cannot be written") }
        defer {
            close(file)
            unlink(path)
        }
        let child = try Self.spawn(["tmux", "-S", socket] + arguments, output: file)
        var status: Int32 = 0
        waitpid(child, &status, 0)
        var output: [UInt8] = []
        var bytes = [UInt8](repeating: 0, count: 16_384)
        while case let count = pread(file, &bytes, bytes.count, off_t(output.count)), count > 0 {
            output += bytes[..<count]
        }
        let text = String(decoding: output, as: UTF8.self)
        guard status == 0 else { throw Failure(description: "tmux \(arguments): \(text)") }
        return text
    }

    private static func spawn(_ command: [String], output: Int32 = -1) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        // What goes on running must not keep open what this process writes to.
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
        if output >= 0 { posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) }
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        // Or what runs in a window would not hear that the window is gone.
        var attributes = Child.plainSignals()
        defer { posix_spawnattr_destroy(&attributes) }
        var strings = command.map { strdup($0) } + [nil]
        defer { for string in strings { free(string) } }
        var process = pid_t()
        let status = posix_spawnp(&process, command[0], &actions, &attributes, &strings, environ)
        guard status == 0 else { throw Failure(description: "\(command[0]) does not start: \(status)") }
        return process
    }
}
