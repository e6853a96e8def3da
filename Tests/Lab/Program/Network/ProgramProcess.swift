import Glibc

/// A running `fourinarow` or `nigh` in a scenario, with the lines that it has printed.
final class ProgramProcess {
    /// The identity that the program uses.
    enum Identity {
        case ephemeral
        /// The identity of the host's user.
        case own
    }

    let name: String
    unowned let host: Host
    /// The lines that it has printed so far.
    private(set) var lines: [String] = []

    private let label: String
    private let child: Child
    private var errors: [String] = []
    private var isKilled = false

    /// Starts `program` with `arguments`, a command and its arguments.
    init(
        _ name: String, _ arguments: [String], of program: String, over transport: String,
        as identity: Identity, on host: Host
    ) throws {
        self.name = name
        self.host = host
        label = "\(host.name)/\(name)"
        var command = host.launcher + ["env", "XDG_DATA_HOME=\(Host.dataFolder)"]
        command += [try Spawning.path(of: program)] + arguments
        command += ["--name", name, "--transport", transport]
        if identity == .ephemeral { command += ["--identity", "ephemeral"] }
        // A program that plays a number of games ends by itself; `check` says how.
        child = try host.lab.supervisor.start(label, command, mayEnd: true)
        child.onLine = { [unowned self] stream, line in
            switch stream {
            case .output:
                lines.append(line)
                // Boards would hide everything else.
                if !line.allSatisfy({ " 1234567.RY".contains($0) }) { host.lab.journal.note(label, line) }
            case .errors:
                errors.append(line)
                host.lab.journal.note(label, "! \(line)")
            }
        }
    }

    // MARK: Input

    /// Types a line.
    func type(_ line: String) {
        host.lab.journal.note(label, "< \(line)")
        child.writeLine(line)
    }

    /// Closes its input: the program reads the end.
    func closeInput() { child.closeInput() }

    func signal(_ number: Int32) {
        host.lab.journal.note(label, "gets signal \(number)")
        if number == SIGKILL { isKilled = true }
        child.signal(number)
    }

    // MARK: Output

    /// Waits until it prints a line that contains `text`, ignoring its first `count` lines; returns that line.
    @discardableResult
    func waitForOutput(
        _ text: String, after count: Int = 0, within limit: Duration = .seconds(10)
    ) throws -> String {
        var next = count
        var found: String?
        try host.lab.wait(for: "\(label) to say \"\(text)\"", within: limit) {
            while found == nil, next < lines.count {
                if lines[next].contains(text) { found = lines[next] }
                next += 1
            }
            if found == nil, !isRunning { throw Failure("\(label) ended before it said \"\(text)\"") }
            return found != nil
        }
        return found ?? ""
    }

    /// Whether it has printed a line that contains `text`.
    func hasPrinted(_ text: String) -> Bool { lines.contains { $0.contains(text) } }

    /// The games that the machine player has reported: the line of each, and the board that follows.
    var games: [[String]] {
        var games: [[String]] = []
        for line in lines {
            if line.hasPrefix("game ") {
                games.append([line])
            } else if line.hasPrefix("  "), !games.isEmpty {
                games[games.count - 1].append(line)
            }
        }
        return games
    }

    // MARK: End

    var isRunning: Bool { !child.isOver }

    /// Waits until the program ends; fails if it ended abnormally, or printed an error.
    func waitForEnd(within limit: Duration = .seconds(10)) throws {
        try host.lab.wait(for: "\(label) to end", within: limit) { !isRunning }
        guard child.ending == (isKilled ? .killed(SIGKILL) : .exited(0)) else {
            throw Failure("\(label) \(child.ending?.description ?? "goes on")")
        }
        guard errors.isEmpty else {
            throw Failure("\(label) printed on its error output: \(errors.joined(separator: " | "))")
        }
    }
}
