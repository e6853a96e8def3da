import CTerminal
import Glibc

/// The descriptors that a ``TerminalSession`` uses. They are closed with the last reference.
///
/// If the system allows it, the terminal is opened again for this object. The program shares its own descriptors with
/// the process that started it, so they would be left non-blocking for the shell as well. If the system does not allow
/// it (the terminal belongs to another user), a terminal that accepts no output holds the session up.
final class TerminalDescriptors: Sendable {
    /// A notice to the session's thread, sent over a pipe.
    enum Notice {
        case wake, resized, continued, stopRequested
    }

    let input: Int32
    let output: Int32
    /// Readable when there is a notice.
    let notices: Int32
    private let notifying: Int32

    private static let defaultSize = TerminalSize(columns: 80, rows: 24)

    init(input: Int32, output: Int32) throws(TerminalFailure) {
        var ends: [Int32] = [-1, -1]
        guard cterminal_open_pipe(&ends) == 0 else {
            throw .system("there is no pipe for the terminal", errno)
        }
        (notices, notifying) = (ends[0], ends[1])
        self.input = Self.own(input, O_RDONLY)
        self.output = Self.own(output, O_WRONLY)
        guard self.input >= 0, self.output >= 0 else {
            throw .system("there are no descriptors for the terminal", errno)
        }
    }

    deinit {
        for descriptor in [input, output, notices, notifying] where descriptor >= 0 { close(descriptor) }
    }

    private static func own(_ descriptor: Int32, _ access: Int32) -> Int32 {
        let anew = open("/proc/self/fd/\(descriptor)", access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        return anew >= 0 ? anew : fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    }

    /// The number of cells that the terminal reports.
    var size: TerminalSize {
        var size = winsize()
        guard ioctl(output, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return Self.defaultSize
        }
        return TerminalSize(columns: Int(size.ws_col), rows: Int(size.ws_row)).bounded
    }

    /// Whether this process may use the terminal. Without job control, it always may.
    var isInForeground: Bool {
        let group = tcgetpgrp(input)
        return group < 0 || group == getpgrp()
    }

    /// Wakes the session's thread.
    func wake() {
        var letter = UInt8(ascii: "P")
        // A full pipe wakes it as well.
        _ = write(notifying, &letter, 1)
    }

    /// Returns the notices since the last call, in order.
    func takeNotices() -> [Notice] {
        var letters = [UInt8](repeating: 0, count: 64)
        let count = read(notices, &letters, letters.count)
        return letters.prefix(max(count, 0)).map { letter in
            switch letter {
            case UInt8(ascii: "W"): .resized
            case UInt8(ascii: "C"): .continued
            case UInt8(ascii: "T"): .stopRequested
            default: .wake
            }
        }
    }

    /// Returns how the terminal is taken over and given back.
    func plan(_ modes: TerminalModes) throws(TerminalFailure) -> cterminal_plan {
        var plan = cterminal_plan()
        plan.input = input
        plan.output = output
        plan.notices = notifying
        guard tcgetattr(input, &plan.before) == 0 else {
            throw .system("the settings of the terminal cannot be read", errno)
        }
        plan.raw = plan.before
        cfmakeraw(&plan.raw)
        plan.taking_length = Self.copy(modes.taking, to: &plan.taking)
        plan.giving_length = Self.copy(modes.giving, to: &plan.giving)
        return plan
    }

    private static func copy(_ text: String, to bytes: inout some Any) -> Int {
        withUnsafeMutableBytes(of: &bytes) { $0.copyBytes(from: text.utf8) }
        return text.utf8.count
    }
}
