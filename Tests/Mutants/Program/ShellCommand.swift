import Glibc

/// A command of the shell, run in a process of its own.
struct ShellCommand {
    enum End: Equatable {
        case exit(Int32)
        case signal(Int32)
        /// It printed the line it was run for, and was killed.
        case line(String)
        /// It took longer than its time limit, and was killed.
        case timeout
    }

    let script: String
    /// The script's `$0`, `$1` and so on.
    let arguments: [String]
    /// In seconds.
    let timeLimit: Int

    init(_ script: String, arguments: [String] = [], timeLimit: Int) {
        self.script = script
        self.arguments = arguments
        self.timeLimit = timeLimit
    }

    /// Runs the command until it ends, until it prints a line for which `isLast` returns true, or until its time limit.
    /// Returns the lines of its standard output and standard error too.
    func run(until isLast: (String) -> Bool = { _ in false }) throws -> (end: End, lines: [String]) {
        let (process, output) = try start()
        defer { close(output) }
        var lines: [String] = []
        let early = read(output, into: &lines, until: isLast)
        if early != nil { kill(process, SIGKILL) }
        var status: Int32 = 0
        waitpid(process, &status, 0)
        let signal = status & 0x7F
        return (early ?? (signal == 0 ? .exit(status >> 8 & 0xFF) : .signal(signal)), lines)
    }

    private func start() throws -> (process: pid_t, output: Int32) {
        // Not a pipe, because only a socket can be made so that no other child inherits it.
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw Folder.Failure(description: "no pair of sockets: \(errno)")
        }
        defer { close(ends[1]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO)
        // The threads that run tests block nearly all signals. The command would inherit that, and survive a crash.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var strings = (["sh", "-c", script] + arguments).map { strdup($0) } + [nil]
        defer { for string in strings { free(string) } }
        var process = pid_t()
        let status = posix_spawn(&process, "/bin/sh", &actions, &attributes, &strings, environ)
        guard status == 0 else {
            close(ends[0])
            throw Folder.Failure(description: "/bin/sh does not start: \(status)")
        }
        return (process, ends[0])
    }

    /// Reads lines up to the end of the output. Returns the reason if it stops earlier.
    private func read(_ output: Int32, into lines: inout [String], until isLast: (String) -> Bool) -> End? {
        let deadline = ContinuousClock.now + .seconds(timeLimit)
        var rest: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while ContinuousClock.now < deadline {
            var wanted = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            guard poll(&wanted, 1, 200) > 0 else { continue }
            let count = Glibc.read(output, &buffer, buffer.count)
            guard count > 0 else { return nil }
            rest += buffer.prefix(count)
            while let end = rest.firstIndex(of: "\n") {
                let line = String(decoding: rest[..<end], as: UTF8.self)
                rest.removeFirst(end + 1)
                lines.append(line)
                if isLast(line) { return .line(line) }
            }
        }
        return .timeout
    }
}
