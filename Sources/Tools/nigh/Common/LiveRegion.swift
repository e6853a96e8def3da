import Glibc
import NighCore
import ProgramLife
import Terminal

/// The last lines of a terminal, which tell how things stand and change in place: on the standard error, and only where that is a
/// terminal. Elsewhere nothing of it is seen.
///
/// Callable from any thread. `@unchecked Sendable`: what changes is guarded by the lock.
final class LiveRegion: @unchecked Sendable {
    /// Whether anybody sees it, so that whoever shows something costly may leave it.
    let isSeen: Bool
    private let hasColours: Bool
    private let lock = Lock()
    private var lines: [Line] = []
    private var hasEnded = false

    init(hasColours: Bool) {
        self.hasColours = hasColours
        isSeen = isTerminal(STDERR_FILENO) && !TerminalTraits.ofThisProcess.isDumb
    }

    /// Shows these lines, in place of those before; no more than the terminal has.
    func show(_ lines: [Line]) {
        guard isSeen else { return }
        lock.withLock {
            guard !hasEnded else { return }
            let old = self.lines.count
            self.lines = Array(lines.suffix(Self.size.rows - 1))
            LineOutput.write(Self.erasing(old) + drawing(), to: STDERR_FILENO)
        }
    }

    /// Has `body` write whole lines to the terminal, above these.
    func aside(_ body: () -> Void) {
        guard isSeen else { return body() }
        lock.withLock {
            if !lines.isEmpty { LineOutput.write(Self.erasing(lines.count), to: STDERR_FILENO) }
            body()
            if !lines.isEmpty { LineOutput.write(drawing(), to: STDERR_FILENO) }
        }
    }

    /// Takes them away for good.
    func end() {
        guard isSeen else { return }
        lock.withLock {
            if !lines.isEmpty { LineOutput.write(Self.erasing(lines.count), to: STDERR_FILENO) }
            lines = []
            hasEnded = true
        }
    }

    private func drawing() -> String {
        let columns = Self.size.columns - 1
        return lines.map { "\($0.fitting(columns).text(colours: hasColours))\n" }.joined()
    }

    private static func erasing(_ count: Int) -> String { count > 0 ? "\u{1B}[\(count)A\r\u{1B}[J" : "" }

    private static var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 1, size.ws_row > 1 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }
}
