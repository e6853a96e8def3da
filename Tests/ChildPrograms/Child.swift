import Glibc

/// A program of this package in a process of its own, whose lines are read as they come. Killed with its last reference.
package final class Child {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    /// For how long anything is waited for, in seconds.
    private let patience: Int

    private let process: pid_t
    private var input: Int32
    private var output: Reader
    private var errors: Reader
    private var isReaped = false

    /// Starts `program` of this package, or the one at that path, with these arguments, and with these variables besides
    /// this process's own; its input ends where it begins, unless it `reads`. Whatever it is to say, it has `patience` seconds for.
    package init(
        _ program: String, _ arguments: [String], environment: [String: String] = [:], reads: Bool = false,
        patience: Int = 60
    ) throws {
        self.patience = patience
        let program = program.hasPrefix("/") ? program : BuiltPrograms.path(of: program)
        var typed: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &typed) == 0 else {
            throw Failure(description: "no pair of sockets: \(errno)")
        }
        input = typed[1]
        defer { close(typed[0]) }
        output = try Reader()
        errors = try Reader()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, typed[0], STDIN_FILENO)
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

    /// Has a program start with its signals as a shell leaves them. The threads that tests run on block nearly all, and
    /// what is tested in this process may have `SIGPIPE` ignored. A program would inherit both: one that kills itself
    /// would go on.
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

    /// Writes a line to its input; one that has ended does not read it.
    package func type(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        _ = Glibc.send(input, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// Lets it read the end of its input.
    package func closeInput() {
        guard input >= 0 else { return }
        shutdown(input, Int32(SHUT_RDWR))
        close(input)
        input = -1
    }

    /// All that was read so far.
    package var lines: [String] { output.lines }

    package func send(_ signal: Int32) { kill(process, signal) }

    /// Nobody reads what it says any more.
    package func stopListening() { output.close() }

    /// Bounds how many descriptors it may have from now on.
    package func limitDescriptors(to count: Int) throws {
        let arguments: [String] = ["/usr/bin/prlimit", "--pid=\(process)", "--nofile=\(count):"]
        var strings = arguments.map { strdup($0) } + [nil]
        defer { for string in strings { free(string) } }
        var tool = pid_t()
        var status: Int32 = -1
        guard posix_spawn(&tool, "/usr/bin/prlimit", nil, nil, &strings, environ) == 0,
            waitpid(tool, &status, 0) == tool, status == 0
        else { throw Failure(description: "prlimit failed: \(status)") }
    }

    /// Waits for a line with all of these words in it; the `occurrence`th of them.
    @discardableResult
    package func line(with words: String..., occurrence: Int = 1) throws -> String {
        try line(with: words, occurrence: occurrence, from: \.output)
    }

    /// Waits for such a line of its standard error.
    @discardableResult
    package func error(with words: String..., occurrence: Int = 1) throws -> String {
        try line(with: words, occurrence: occurrence, from: \.errors)
    }

    private func line(
        with words: [String], occurrence: Int, from reader: KeyPath<Child, Reader>
    ) throws -> String {
        let deadline = Self.now + patience
        while true {
            let found = self[keyPath: reader].lines.filter { line in words.allSatisfy(line.contains) }
            if found.count >= occurrence { return found[occurrence - 1] }
            guard self[keyPath: reader].isOpen, try listen(until: deadline) else {
                let lines = self[keyPath: reader].lines
                throw Failure(description: "it ended before it said \(words); it said \(lines)")
            }
        }
    }

    /// Waits for the end; returns the exit status, and what was said to the standard error.
    package func end() throws -> (status: Int32, errors: [String]) {
        let deadline = Self.now + patience
        while try listen(until: deadline) {}
        var status: Int32 = 0
        waitpid(process, &status, 0)
        isReaped = true
        let signal = status & 0x7F
        return (signal == 0 ? status >> 8 & 0xFF : -signal, errors.lines)
    }

    /// Waits until it says more, to one of the two or to the other: where one is not read, it stops once that is full. False when
    /// both have ended.
    private func listen(until deadline: Int) throws -> Bool {
        // `poll` passes over those that have ended, whose number is -1.
        var wanted = [output.near, errors.near].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard output.isOpen || errors.isOpen else { return false }
        guard poll(&wanted, nfds_t(wanted.count), Int32(max(0, deadline - Self.now) * 1_000)) > 0 else {
            throw Failure(description: "it says nothing more; it said \(lines) and \(errors.lines)")
        }
        if wanted[0].revents != 0 { output.readMore() }
        if wanted[1].revents != 0 { errors.readMore() }
        return true
    }

    private static var now: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec
    }

    /// One end of a pair of sockets, read in lines.
    private struct Reader {
        private(set) var lines: [String] = []
        private(set) var near: Int32
        private(set) var far: Int32
        private var rest: [UInt8] = []

        init() throws {
            var ends: [Int32] = [-1, -1]
            // Unlike a pipe's, a socket's ends can be kept from other children from the first.
            let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
            guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else {
                throw Failure(description: "no pair of sockets: \(errno)")
            }
            (near, far) = (ends[0], ends[1])
        }

        mutating func closeFar() {
            Glibc.close(far)
            far = -1
        }

        mutating func close() {
            guard near >= 0 else { return }
            // Whatever is just being started elsewhere holds the socket too, until it has become its program.
            shutdown(near, Int32(SHUT_RDWR))
            Glibc.close(near)
            near = -1
        }

        var isOpen: Bool { near >= 0 }

        /// Reads once what is there.
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
