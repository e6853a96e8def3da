import Glibc
import Synchronization
import Terminal

/// A program that shows the size of its terminal, and ends in the way that the pressed key selects.
struct Victim {
    private let kind: String

    init(_ kind: String) { self.kind = kind }

    /// Two threads use the session, which is created after the handler that needs it.
    private static let session = Mutex<TerminalSession?>(nil)
    private static var held: TerminalSession? { session.withLock { $0 } }

    func run() -> Never {
        enterForeground()
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
            let session = try TerminalSession(traits: traits) { event in
                switch event {
                case .input(.character(let key)): Self.obey(key)
                case .resized(let size): Self.show(size)
                default: break
                }
            }
            Self.session.withLock { $0 = session }
            Self.show(session.size)
        } catch {
            exit(100)
        }
        guard kind == "patient" else { while true { pause() } }
        var signals = Self.signals(SIGTERM)
        var signal: Int32 = 0
        while sigwait(&signals, &signal) != 0 {}
        Self.held?.restore()
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

    private static func show(_ size: TerminalSize) {
        var canvas = Canvas(size)
        canvas.write("ready:\(size.columns)x\(size.rows)", at: CellPosition(column: 0, row: 0), .bold)
        held?.paint { [canvas] _ in canvas }
    }

    private static func obey(_ key: Unicode.Scalar) {
        switch key {
        case "a": abort()
        case "b": restoreSlowly()
        case "e": exit(7)
        case "f": fatalError("as the test wants it")
        case "m": UnsafeMutablePointer<Int>(bitPattern: 8)?.pointee = 1
        case "r":
            held?.restore()
            exit(0)
        case "z": held?.suspend()
        default: break
        }
    }

    /// Gives the terminal back while it accepts no output, which takes 100 ms, and is ended by a signal meanwhile.
    private static func restoreSlowly() {
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
        held?.restore()
        while true { pause() }
    }
}
