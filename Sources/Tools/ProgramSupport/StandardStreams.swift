// C's `stdout` is a variable in Glibc, which nobody changes.
@preconcurrency import Glibc
import NighCore

/// The standard input, output and error of a program.
public enum StandardStreams {
    /// `@unchecked Sendable`: the variables are guarded by the lock.
    private final class State: @unchecked Sendable {
        let lock = Lock()
        var program = ""
        /// The `errno` of the first write to the standard output that failed.
        var fault: Int32?
    }

    private static let state = State()

    /// Makes a program that ends with 0 end with 1, and say why, if some of its output could not be written.
    ///
    /// Call this before anything is opened. It opens /dev/null in place of each stream that was closed from the start,
    /// so that no other file gets its descriptor.
    public static func begin(for program: String) {
        // Each of these opens, but fails as a closed stream does: the input when read from, the outputs when written
        // to.
        for (number, mode) in [
            (STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY),
        ]
        where fcntl(number, F_GETFD) < 0 {
            _ = open("/dev/null", mode)
        }
        state.lock.withLock { state.program = program }
        on_exit({ status, _ in StandardStreams.finish(status) }, nil)
    }

    /// Notes that a write to the standard output has failed. If its reader has gone, that is no failure of this
    /// program.
    static func outputFailed(_ number: Int32) {
        guard number != EPIPE else { return }
        state.lock.withLock { state.fault = state.fault ?? number }
    }

    private static func finish(_ status: Int32) {
        LineOutput.flush()
        // Writes the buffer of `print`, and checks whether earlier writes failed.
        if fflush(stdout) != 0 { outputFailed(errno) } else if ferror(stdout) != 0 { outputFailed(EIO) }
        let (program, fault) = state.lock.withLock { (state.program, state.fault) }
        guard let fault else { return }
        let cause = String(cString: strerror(fault))
        LineOutput.printError("writing to the standard output: \(cause)", by: program)
        LineOutput.flush()
        if status == 0 { _exit(1) }
    }
}
