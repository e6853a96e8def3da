import Glibc
import NighTestKit

/// Runs a program of this package in terminals of 80 × 24, on a tmux server of its own, and returns as text what a
/// person would see. The server ends with the last reference, and with this process.
package final class TerminalWindows {
    /// The time limit of every wait, as `LoadAdjustedClock` counts.
    private static let patience = Duration.seconds(40)
    private let socket: String
    private let server: Child
    private let program: String

    /// Prepares windows for `program`.
    package init(of program: String = "fourinarow") throws {
        self.program = BuiltPrograms.path(of: program)
        socket = "/tmp/nigh-windows-\(getpid())-\(UInt32.random(in: .min ... .max))"
        // In the foreground, so that it always ends with this process. It goes on without windows then.
        server = try Child(
            "/usr/bin/setpriv",
            ["--pdeathsig", "KILL", "tmux", "-D", "-S", socket, "-f", "/dev/null"])
        try wait("the server is there") { access(socket, F_OK) == 0 }
    }

    deinit {
        // Its windows, and the programs in them, get SIGHUP.
        _ = try? tmux(["kill-server"])
        unlink(socket)
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
            throw Child.Failure(description: "\(name) does not show \"\(words)\" but:\n\(try text(name))")
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
        throw Child.Failure(description: "in vain: \(what)")
    }

    @discardableResult
    private func tmux(_ arguments: [String]) throws -> String {
        try Child.run("/usr/bin/tmux", ["-S", socket] + arguments).joined(separator: "\n")
    }
}
