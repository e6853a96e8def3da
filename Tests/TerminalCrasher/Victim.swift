import Glibc
import NighCore
import Terminal

/// A program that shows the size of its terminal, and ends in the way that the pressed key selects.
struct Victim {
    private let kind: String

    init(_ kind: String) { self.kind = kind }

    /// Holds the session, which is created after the handler that needs it. Two threads use it, each under the lock.
    private final class Holder: Sendable {
        private let lock = Lock()
        /// Guarded by the lock.
        nonisolated(unsafe) private var session: TerminalSession?

        var held: TerminalSession? {
            get { lock.withLock { session } }
            set { lock.withLock { session = newValue } }
        }
    }

    func run() -> Never {
        enterForeground()
        let holder = Holder()
        switch kind {
        case "chained":
            Glibc.signal(SIGSEGV) { number in
                _ = write(STDOUT_FILENO, "chained", 7)
                Glibc.signal(number, SIG_DFL)
            }
        case "continued":
            // Another thread takes the terminal again when the process continues.
            Glibc.signal(SIGSEGV) { number in
                kill(getpid(), SIGCONT)
                usleep(300_000)
                Glibc.signal(number, SIG_DFL)
            }
        case "patient":
            var signals = Self.signals(SIGTERM)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
        default: break
        }
        do throws(TerminalFailure) {
            let traits = TerminalTraits(colours: .sixteen, isUnicode: true)
            holder.held = try TerminalSession(traits: traits) { event in
                switch event {
                case .input(.character(let key)): Self.obey(key, holder.held)
                case .resized(let size): Self.show(size, holder.held)
                default: break
                }
            }
        } catch {
            exit(100)
        }
        Self.show(holder.held?.size ?? TerminalSize(columns: 0, rows: 0), holder.held)
        guard kind == "patient" else { while true { pause() } }
        var signals = Self.signals(SIGTERM)
        var signal: Int32 = 0
        while sigwait(&signals, &signal) != 0 {}
        holder.held?.restore()
        exit(5)
    }

    /// Moves the process to the foreground, as a shell does for its jobs.
    private func enterForeground() {
        var signals = Self.signals(SIGTTOU)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        tcsetpgrp(STDIN_FILENO, getpgrp())
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    private static func signals(_ signal: Int32) -> sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, signal)
        return signals
    }

    private static func show(_ size: TerminalSize, _ session: TerminalSession?) {
        var canvas = Canvas(size)
        canvas.write("ready:\(size.columns)x\(size.rows)", at: CellPosition(column: 0, row: 0), .bold)
        session?.paint { [canvas] _ in canvas }
    }

    private static func obey(_ key: Unicode.Scalar, _ session: TerminalSession?) {
        switch key {
        case "a": abort()
        case "b": restoreSlowly(session)
        case "e": exit(7)
        case "f": fatalError("as the test wants it")
        case "m": UnsafeMutablePointer<Int>(bitPattern: 8)?.pointee = 1
        case "r":
            session?.restore()
            exit(0)
        case "z": session?.suspend()
        default: break
        }
    }

    /// Gives the terminal back while it accepts no output, which takes 100 ms, and is ended by a signal meanwhile.
    private static func restoreSlowly(_ session: TerminalSession?) {
        let terminal = open("/dev/tty", O_WRONLY | O_NONBLOCK)
        while write(terminal, "x", 1) == 1 {}
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { _ in
                usleep(30_000)
                kill(getpid(), SIGTERM)
                return nil
            }, nil)
        session?.restore()
        while true { pause() }
    }
}
