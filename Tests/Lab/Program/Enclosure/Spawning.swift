import Glibc

/// Starts processes with the system's own calls.
enum Spawning {
    /// Creates a pipe whose ends no child inherits unless they are passed to it.
    static func pipe() throws -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else { throw Failure.system("cannot make a pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    /// Starts `command` with `descriptors` (own number, number in the child), with default handlers for all signals,
    /// and optionally as the leader of a process group.
    static func spawn(
        _ command: [String], environment: [String], descriptors: [(own: Int32, its: Int32)],
        inOwnGroup: Bool = false
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (own, its) in descriptors { posix_spawn_file_actions_adddup2(&actions, own, its) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        let group = inOwnGroup ? POSIX_SPAWN_SETPGROUP : 0
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | group))
        var process = pid_t()
        let arguments = command.map { strdup($0) }
        let variables = environment.map { strdup($0) }
        defer { for text in arguments + variables { free(text) } }
        let status = posix_spawnp(
            &process, command[0], &actions, &attributes, arguments + [nil], variables + [nil])
        guard status == 0 else {
            errno = status
            throw Failure.system("cannot start \(command[0])")
        }
        return process
    }

    /// Waits for `process` to end.
    static func wait(for process: pid_t) -> Child.Ending {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { return .exited(127) }
        }
        return Child.Ending(waitStatus: status)
    }

    /// The environment variables of this process, as `name=value`.
    static var ownEnvironment: [String] {
        var variables: [String] = []
        var next = environ
        while let variable = next.pointee {
            variables.append(String(cString: variable))
            next += 1
        }
        return variables
    }

    /// Returns the path of the program that runs here.
    static func ownPath() throws -> String {
        guard let path = realpath("/proc/self/exe", nil) else {
            throw Failure.system("cannot find this program")
        }
        defer { free(path) }
        return String(cString: path)
    }

    /// Returns the folder into which this program was built.
    static func folder() throws -> String {
        let own = try ownPath()
        return String(own.prefix(upTo: own.lastIndex(of: "/") ?? own.startIndex))
    }

    /// Returns the path of a program that was built into the same folder as this one.
    static func path(of program: String) throws -> String {
        let path = "\(try folder())/\(program)"
        guard access(path, X_OK) == 0 else {
            throw Failure("there is no \(path); `swift build --product \(program)` makes it")
        }
        return path
    }
}

/// Something that a scenario needs has failed.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ words: String) { description = words }

    /// Adds the system's message for the call that just failed.
    static func system(_ words: String) -> Failure {
        let number = errno
        return Failure("\(words): \(String(cString: strerror(number))) (\(number))")
    }
}
