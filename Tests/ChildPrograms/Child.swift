import Glibc
import NighTestKit

/// Runs a program in a process of its own and reads its output line by line. The process is killed with the last
/// reference.
package final class Child {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    /// The program, as it was named to the initialiser, and its arguments.
    package let call: [String]
    /// The time limit of every wait, as `LoadAdjustedClock` counts.
    private let patience: Duration

    private let process: pid_t
    private var input: Int32
    private var output: Reader
    private var errors: Reader
    private var isReaped = false

    /// Starts the program of this package with that name, or the program at that absolute path. `environment` is added
    /// to this process's own variables. Standard input is empty unless the program `reads`. `patience` limits every
    /// wait, in seconds of a machine that has a processor for every program.
    package init(
        _ program: String, _ arguments: [String], environment: [String: String] = [:], reads: Bool = false,
        patience: Int = 60
    ) throws {
        call = [program] + arguments
        self.patience = .seconds(patience)
        let program = program.hasPrefix("/") ? program : BuiltPrograms.path(of: program)
        let typed = try Self.socketPair()
        input = typed.near
        defer { close(typed.far) }
        output = try Reader()
        errors = try Reader()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, typed.far, STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, output.far, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, errors.far, STDERR_FILENO)
        var attributes = Self.plainSignals()
        defer { posix_spawnattr_destroy(&attributes) }
        var strings = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for string in strings { free(string) } }
        var variables = Self.variables(besides: environment).map { strdup($0) } + [nil]
        defer { for variable in variables { free(variable) } }
        var process = pid_t()
        let status = posix_spawn(&process, program, &actions, &attributes, &strings, &variables)
        guard status == 0 else { throw Failure(description: "\(program) does not start: \(status)") }
        self.process = process
        output.closeFar()
        errors.closeFar()
        if !reads { closeInput() }
    }

    deinit {
        closeInput()
        guard !isReaped else { return }
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
    }

    /// Runs a program to its end; returns the lines of its standard output. Throws the end of what it said if it fails.
    @discardableResult
    package static func run(
        _ program: String, _ arguments: [String], environment: [String: String] = [:],
        typing text: String? = nil, patience: Int = 60
    ) throws -> [String] {
        let child = try Child(
            program, arguments, environment: environment, reads: text != nil, patience: patience)
        if let text { child.type(text) }
        child.closeInput()
        let (status, errors) = try child.end()
        guard status == 0 else {
            // The end of a long output does not say which test failed.
            let issues = child.lines.filter { $0.contains(" recorded an issue ") }
            let words = (issues + (child.lines + errors).suffix(30)).joined(separator: "\n")
            throw Failure(description: "\(program) \(arguments) ended with \(status): \(words)")
        }
        return child.lines
    }

    /// A pair of sockets that no other child inherits; `pipe` has no such option.
    static func socketPair() throws -> (near: Int32, far: Int32) {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw Failure(description: "no pair of sockets: \(errno)")
        }
        return (ends[0], ends[1])
    }

    /// Attributes that start a program with its signals as a shell leaves them. The threads that run tests block nearly
    /// all signals, and code under test may have `SIGPIPE` ignored in this process. A program would inherit both, and
    /// would go on after it sent itself a signal that should end it.
    package static func plainSignals() -> posix_spawnattr_t {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        return attributes
    }

    private static func variables(besides added: [String: String]) -> [String] {
        var variables: [String] = []
        var next = environ
        while let variable = next.pointee {
            let text = String(cString: variable)
            if added[String(text.prefix { $0 != "=" })] == nil { variables.append(text) }
            next += 1
        }
        return variables + added.map { "\($0.key)=\($0.value)" }
    }

    /// Writes a line to its standard input. A program that has ended does not read it.
    package func type(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        _ = Glibc.send(input, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// Closes its standard input: the program reads the end.
    package func closeInput() {
        guard input >= 0 else { return }
        shutdown(input, Int32(SHUT_RDWR))
        close(input)
        input = -1
    }

    /// The lines of its standard output that were read so far.
    package var lines: [String] { output.lines }

    package func send(_ signal: Int32) { kill(process, signal) }

    /// Stops reading its standard output.
    package func stopListening() { output.close() }

    /// Changes a limit of the process from now on, as `prlimit` does it, for example `nofile=3:`.
    package func limit(_ limit: String) throws {
        try Self.run("/usr/bin/prlimit", ["--pid=\(process)", "--\(limit)"])
    }

    /// Waits for a line of standard output that contains all of `words`, or for the `occurrence`th such line.
    @discardableResult
    package func line(with words: String..., occurrence: Int = 1) throws -> String {
        try line("\(words)", occurrence: occurrence, from: \.output) { line in
            words.allSatisfy(line.contains)
        }
    }

    /// Waits for the `occurrence`th line of standard output for which `isWanted` returns true, and returns it.
    @discardableResult
    package func line(occurrence: Int = 1, where isWanted: (String) -> Bool) throws -> String {
        try line("what was expected", occurrence: occurrence, from: \.output, where: isWanted)
    }

    /// Waits for a line of standard error that contains all of `words`, or for the `occurrence`th such line.
    @discardableResult
    package func error(with words: String..., occurrence: Int = 1) throws -> String {
        try line("\(words)", occurrence: occurrence, from: \.errors) { line in
            words.allSatisfy(line.contains)
        }
    }

    /// Waits for the `occurrence`th line for which `isWanted` returns true. An error calls that line `description`.
    private func line(
        _ description: String, occurrence: Int = 1, from reader: KeyPath<Child, Reader>,
        where isWanted: (String) -> Bool
    ) throws -> String {
        let clock = LoadAdjustedClock()
        while true {
            let found = self[keyPath: reader].lines.filter(isWanted)
            if found.count >= occurrence { return found[occurrence - 1] }
            guard self[keyPath: reader].isOpen, try listen(with: clock) else {
                let lines = self[keyPath: reader].lines
                throw Failure(description: "it ended before it said \(description); it said \(lines)")
            }
        }
    }

    /// Waits until the program ends; returns its exit status (or the negative number of the signal that ended it) and
    /// the lines of its standard error.
    package func end() throws -> (status: Int32, errors: [String]) {
        let clock = LoadAdjustedClock()
        while try listen(with: clock) {}
        var status: Int32 = 0
        waitpid(process, &status, 0)
        isReaped = true
        let signal = status & 0x7F
        return (signal == 0 ? status >> 8 & 0xFF : -signal, errors.lines)
    }

    /// Waits until there is more output on either stream. Both are read, because the program stops when one of them is
    /// full. Returns false when both have ended. `clock` began with the wait.
    private func listen(with clock: LoadAdjustedClock) throws -> Bool {
        // `poll` ignores the streams that have ended, whose descriptor is -1.
        var wanted = [output.near, errors.near].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard output.isOpen || errors.isOpen else { return false }
        // In short turns, because the clock counts what it sees when it is asked.
        while poll(&wanted, nfds_t(wanted.count), 200) <= 0 {
            clock.advance()
            guard clock.elapsed < patience else {
                throw Failure(description: "it says nothing more; it said \(lines) and \(errors.lines)")
            }
        }
        clock.advance()
        // A program that goes on talking has more time.
        guard clock.elapsed < patience * 10 else {
            throw Failure(
                description:
                    "it talks of other things; it last said \(lines.suffix(3)) and \(errors.lines.suffix(3))")
        }
        if wanted[0].revents != 0 { output.readMore() }
        if wanted[1].revents != 0 { errors.readMore() }
        return true
    }

    /// One end of a pair of sockets, read in lines.
    private struct Reader {
        private(set) var lines: [String] = []
        private(set) var near: Int32
        private(set) var far: Int32
        private var rest: [UInt8] = []

        init() throws {
            (near, far) = try Child.socketPair()
        }

        mutating func closeFar() {
            Glibc.close(far)
            far = -1
        }

        mutating func close() {
            guard near >= 0 else { return }
            // A child that is being started elsewhere also holds the socket until its `exec`, so `close`
            // alone would not end the connection.
            shutdown(near, Int32(SHUT_RDWR))
            Glibc.close(near)
            near = -1
        }

        var isOpen: Bool { near >= 0 }

        /// Reads once what is available.
        mutating func readMore() {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let count = read(near, &buffer, buffer.count)
            guard count > 0 else { return close() }
            rest += buffer.prefix(count)
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                lines.append(String(decoding: rest[..<end], as: UTF8.self))
                rest.removeFirst(end + 1)
            }
        }
    }
}
