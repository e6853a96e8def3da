import Glibc

/// Both ends of a terminal: the program's, and the one that a window would have.
final class PseudoTerminal {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The program's end.
    let line: Int32
    let path: String
    private var window: Int32
    /// Everything that the program has written so far.
    private(set) var seen: [UInt8] = []

    /// The time limit of every wait, in milliseconds.
    private static let timeout: Int32 = 300_000

    /// TIOCGPTN and TIOCSPTLCK, which Swift does not import.
    private static let (getNumber, setLock): (UInt, UInt) = (0x8004_5430, 0x4004_5431)

    init(columns: Int = 80, rows: Int = 24) throws {
        window = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var (number, isLocked): (UInt32, Int32) = (0, 0)
        guard window >= 0, ioctl(window, Self.getNumber, &number) == 0,
            ioctl(window, Self.setLock, &isLocked) == 0
        else { throw Failure(description: "no pseudo-terminal: \(errno)") }
        path = "/dev/pts/\(number)"
        line = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard line >= 0 else { throw Failure(description: "\(path): \(errno)") }
        // Not the defaults, so that restoring cannot succeed by setting defaults.
        var attributes = attributes
        attributes.c_iflag |= tcflag_t(IXANY)
        attributes.c_lflag &= ~tcflag_t(ECHOE)
        withUnsafeMutableBytes(of: &attributes.c_cc) { $0[Int(VEOF)] = 7 }
        tcsetattr(line, TCSANOW, &attributes)
        resize(columns: columns, rows: rows)
    }

    deinit {
        close(line)
        closeWindow()
    }

    func closeWindow() {
        guard window >= 0 else { return }
        close(window)
        window = -1
    }

    /// The current attributes of the terminal.
    var attributes: termios {
        var attributes = termios()
        tcgetattr(line, &attributes)
        return attributes
    }

    /// The current attributes as numbers that can be compared.
    var settings: [UInt32] {
        let attributes = attributes
        let keys = withUnsafeBytes(of: attributes.c_cc) { $0.map(UInt32.init) }
        return [attributes.c_iflag, attributes.c_oflag, attributes.c_cflag, attributes.c_lflag] + keys
    }

    /// Whether reads and writes on the descriptor block.
    var isBlocking: Bool { fcntl(line, F_GETFL) & O_NONBLOCK == 0 }

    func resize(columns: Int, rows: Int) {
        var size = winsize(ws_row: UInt16(rows), ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
        _ = ioctl(window, UInt(TIOCSWINSZ), &size)
    }

    func type(_ text: String) {
        let bytes = Array(text.utf8)
        _ = write(window, bytes, bytes.count)
    }

    /// Reads until `text` appears in what was written since `start`; returns the position of its end.
    @discardableResult
    func awaitText(_ text: String, since start: Int = 0) throws -> Int {
        let wanted = Array(text.utf8)
        var unread = start
        while true {
            if let range = seen[unread...].firstRange(of: wanted) { return range.upperBound }
            unread = max(start, seen.count - wanted.count + 1)
            guard readMore(waiting: Self.timeout) else {
                throw Failure(
                    description: "\(text.debugDescription) has not come, but "
                        + String(decoding: seen[start...], as: UTF8.self).debugDescription)
            }
        }
    }

    /// Reads everything that is available now.
    func readAll() { while readMore(waiting: 0) {} }

    private func readMore(waiting: Int32) -> Bool {
        var watched = pollfd(fd: window, events: Int16(POLLIN), revents: 0)
        guard poll(&watched, 1, waiting) == 1 else { return false }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = read(window, &bytes, bytes.count)
        guard count > 0 else { return false }
        seen += bytes.prefix(count)
        return true
    }
}
