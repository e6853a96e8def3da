import Glibc

/// Runs other programs of the system.
enum ChildProgram {
    /// Runs a program and waits for its end. Returns its exit status; nil if it cannot be started. Blocks the thread.
    ///
    /// - Parameters:
    ///   - command: its name, which is looked for in PATH, and its arguments.
    ///   - input: the descriptor that becomes its standard input; nil for none.
    ///   - output: the descriptor that becomes its standard output; nil for this program's standard error.
    ///   - variables: the variables that its environment has besides those of this program.
    static func run(
        _ command: [String], input: Int32?, output: Int32?, variables: [(name: String, value: String)] = []
    ) -> Int32? {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        } else {
            posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_adddup2(&actions, output ?? STDERR_FILENO, STDOUT_FILENO)
        // This program blocks the signals that end it, and a child would inherit that.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

        let arguments = command.map { strdup($0) } + [nil]
        let environment = Self.environment(with: variables).map { strdup($0) } + [nil]
        defer { for text in arguments + environment { free(text) } }
        var process = pid_t()
        guard posix_spawnp(&process, command[0], &actions, &attributes, arguments, environment) == 0 else {
            return nil
        }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { return nil }
        }
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
    }

    private static func environment(with variables: [(name: String, value: String)]) -> [String] {
        var texts: [String] = []
        var next = environ
        while let entry = next.pointee {
            texts.append(String(cString: entry))
            next += 1
        }
        texts.removeAll { text in variables.contains { text.hasPrefix("\($0.name)=") } }
        return texts + variables.map { "\($0.name)=\($0.value)" }
    }
}
