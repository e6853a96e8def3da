import Glibc
import NighTestKit

/// A private D-Bus daemon. It ends with the last reference, and with this process, however that ends.
final class PrivateBus {
    struct Failure: Error {
        let words: String
    }

    private let folder = TemporaryFolder()
    private let configuration: String
    private var shell = pid_t(0)
    /// When this is closed, the shell kills its daemon and ends.
    private var near: Int32 = -1

    /// Allows everybody everything, and starts nothing on demand.
    init() throws {
        configuration = folder.file(
            "bus.conf",
            """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <type>session</type>
              <listen>unix:path=\(folder.path)/bus</listen>
              <policy context="default">
                <allow send_destination="*"/>
                <allow receive_sender="*"/>
                <allow own="*"/>
              </policy>
            </busconfig>
            """)
        try start()
    }

    deinit { stop() }

    var address: String { "unix:path=\(folder.path)/bus" }

    /// Starts the daemon. It serves when this returns.
    func start() throws {
        var ends: [Int32] = [-1, -1]
        // A socket can be created so that no other child inherits it; `pipe` has no such option.
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw Failure(words: "no sockets") }
        near = ends[0]
        defer { close(ends[1]) }
        let script = """
            dbus-daemon --config-file="$1" --nofork --nopidfile --print-address & read -r nothing; kill -9 $!; wait
            """
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for its in [STDIN_FILENO, STDOUT_FILENO] {
            posix_spawn_file_actions_adddup2(&actions, ends[1], its)
        }
        // The threads that run tests block signals. With those blocked, the shell would wait for the end of its child
        // forever.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let command: [String] = ["sh", "-c", script, "sh", configuration]
        var strings = command.map { strdup($0) } + [nil]
        defer { for string in strings { free(string) } }
        guard posix_spawn(&shell, "/bin/sh", &actions, &attributes, &strings, environ) == 0 else {
            throw Failure(words: "no shell")
        }
        var timeout = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(near, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var byte: UInt8 = 0
        repeat {
            guard read(near, &byte, 1) == 1 else { throw Failure(words: "the D-Bus daemon does not start") }
        } while byte != UInt8(ascii: "\n")
    }

    /// Kills the daemon, and waits for its end.
    func stop() {
        guard near >= 0 else { return }
        close(near)
        near = -1
        waitpid(shell, nil, 0)
        unlink(folder.path + "/bus")
    }
}
