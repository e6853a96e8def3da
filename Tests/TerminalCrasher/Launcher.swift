import Glibc

/// A shell with job control for one program. The terminal becomes its controlling terminal. The program becomes a job,
/// which moves itself to the foreground.
///
/// The test reads its output: one line with the process ID, one each time the program stops, one when it has ended. A
/// byte on its input continues the program.
struct Launcher {
    let terminal: String
    let arguments: [String]

    func run() -> Int32 {
        setsid()
        // The first terminal that the leader of a session opens becomes its controlling terminal.
        let terminal = open(self.terminal, O_RDWR)
        guard terminal >= 0, let child = start(on: terminal) else { return 1 }
        say("process \(child)")
        while true {
            var status: Int32 = 0
            guard waitpid(child, &status, WUNTRACED) == child else { return 1 }
            if status & 0xFF == 0x7F {
                say("stopped \(status >> 8 & 0xFF)")
                var byte: UInt8 = 0
                guard read(STDIN_FILENO, &byte, 1) == 1 else { return 1 }
                kill(child, SIGCONT)
            } else {
                say(status & 0x7F == 0 ? "status \(status >> 8 & 0xFF)" : "signal \(status & 0x7F)")
                return 0
            }
        }
    }

    private func start(on terminal: Int32) -> pid_t? {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, terminal, STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, terminal, STDOUT_FILENO)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        var strings = (["victim"] + arguments).map { strdup($0) } + [nil]
        defer { for string in strings { free(string) } }
        var child = pid_t()
        let status = posix_spawn(&child, "/proc/self/exe", &actions, &attributes, &strings, environ)
        return status == 0 ? child : nil
    }

    private func say(_ words: String) {
        let line = Array("\(words)\n".utf8)
        _ = write(STDOUT_FILENO, line, line.count)
    }
}
