import Glibc
import NighTestKit

/// Runs a program of this package in terminals of 80 × 24, on a tmux server of its own, and returns as text what a
/// person would see. The server ends with the last reference, and with this process.
package final class TerminalWindows {
    package struct Failure: Error, CustomStringConvertible { package let description: String }

    /// The time limit of every wait, as `LoadAdjustedClock` counts.
    private static let patience = Duration.seconds(40)
    private let socket: String
    private let server: pid_t

    private let program: String

    /// Prepares windows for `program`.
    package init(of program: String = "fourinarow") throws {
        self.program = BuiltPrograms.path(of: program)
        socket = "/tmp/nigh-windows-\(getpid())-\(UInt32.random(in: .min ... .max))"
        // Otherwise a server without windows ends.
        let settings = socket + ".conf"
        try Self.write("set -g exit-empty off\n", to: settings)
        // In the foreground, so that it has a process ID and always ends with this process.
        server = try Self.spawn([
            "setpriv", "--pdeathsig", "KILL", "tmux", "-D", "-S", socket, "-f", settings,
        ])
        try wait("the server is there") { access(socket, F_OK) == 0 }
    }

    deinit {
        // Its windows, and the programs in them, get SIGHUP.
        _ = try? tmux(["kill-server"])
        kill(server, SIGKILL)
        waitpid(server, nil, 0)
        unlink(socket)
        unlink(socket + ".conf")
    }

    /// Opens a window called `name`, in which a shell runs the program and then prints its exit status.
    package func open(_ name: String, _ arguments: String, environment: String = "LANG=C.UTF-8") throws {
        let command =
            "env TERM=screen-256color NO_COLOR=1 \(environment) \(program) \(arguments); echo ended with $?; cat"
        try tmux(["new-session", "-d", "-s", name, "-x", "80", "-y", "24", command])
    }

    /// The text in the window, without blanks at the ends of lines, and with a placeholder for measured times.
    package func text(_ name: String) throws -> String {
        let captured = try tmux(["capture-pane", "-p", "-t", name])
        var lines = captured.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            String(line.reversed().drop { $0 == " " }.reversed())
        }
        while lines.last == "" { lines.removeLast() }
        return lines.joined(separator: "\n")
            .replacing(#/round trip [0-9.]+ m?s/#, with: "round trip # ms")
    }

    package func press(_ name: String, _ keys: String...) throws {
        try tmux(["send-keys", "-t", name] + keys)
    }

    package func resize(_ name: String, _ columns: Int, _ rows: Int) throws {
        try tmux(["resize-window", "-t", name, "-x", "\(columns)", "-y", "\(rows)"])
    }

    /// Polls until the window shows `words`, because tmux does not report changes.
    package func wait(_ name: String, shows words: String) throws {
        do {
            try wait(words) { try text(name).contains(words) }
        } catch {
            throw Failure(description: "\(name) does not show \"\(words)\" but:\n\(try text(name))")
        }
    }

    /// Polls until `condition` holds, because a screen may be read while it is being drawn.
    package func wait(_ what: String, until condition: () throws -> Bool) throws {
        let clock = LoadAdjustedClock()
        while clock.elapsed < Self.patience {
            if try condition() { return }
            usleep(20_000)
            clock.advance()
        }
        throw Failure(description: "in vain: \(what)")
    }

    private static func write(_ text: String, to path: String) throws {
        guard let file = fopen(path, "wx") else { throw Failure(description: "\(path) cannot be written") }
        fputs(text, file)
        fclose(file)
    }

    @discardableResult
    private func tmux(_ arguments: [String]) throws -> String {
        // A file instead of a pipe: a program that another test starts at this moment could inherit the other end of a
        // pipe.
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
        // A process that keeps running must not hold open what this process writes to.
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
        if output >= 0 { posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) }
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        // Otherwise a program in a window would not get the signal that the window is gone.
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
