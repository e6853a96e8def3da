// The standard output of C is a variable there, which nobody changes.
@preconcurrency import Glibc
import NighCore

/// What a program was started with to read from and to write to.
public enum StandardStreams {
    /// `@unchecked Sendable`: what changes is guarded by the lock.
    private final class State: @unchecked Sendable {
        let lock = Lock()
        var program = ""
        /// The `errno` of the first write to the standard output that failed.
        var fault: Int32?
    }

    private static let state = State()

    /// Has the program that ends with 0 end with 1, and say why, where not all that it printed could be written. To be called before
    /// anything is opened: what was closed from the start is kept from becoming something else's.
    public static func begin(for program: String) {
        // Each can be opened, and neither be read from nor written to the way it should.
        for (number, way) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
        where fcntl(number, F_GETFD) < 0 {
            _ = open("/dev/null", way)
        }
        state.lock.withLock { state.program = program }
        on_exit({ status, _ in StandardStreams.finish(status) }, nil)
    }

    /// A write to the standard output has failed. That its reader has gone is no failure of this program.
    static func outputFailed(_ number: Int32) {
        guard number != EPIPE else { return }
        state.lock.withLock { state.fault = state.fault ?? number }
    }

    private static func finish(_ status: Int32) {
        // What `print` has kept until now, and what it could not write before.
        if fflush(stdout) != 0 { outputFailed(errno) } else if ferror(stdout) != 0 { outputFailed(EIO) }
        let (program, fault) = state.lock.withLock { (state.program, state.fault) }
        guard let fault else { return }
        let cause = String(cString: strerror(fault))
        LineOutput.complain("writing to the standard output: \(cause)", by: program)
        if status == 0 { _exit(1) }
    }
}
