import Glibc
import NighCore
import ProgramSupport
import Terminal

/// The last lines of a terminal, which show the current state and are redrawn in place.
///
/// They are written to the standard error, and only if that is a terminal; otherwise nothing is shown. A question can
/// take their place: it stands on the last line, even if the standard error is no terminal. Everything written before
/// the answer gets lines of its own, and the question is shown again below.
///
/// Callable from any thread. `@unchecked Sendable`: the lock guards all mutable state.
final class LiveRegion: @unchecked Sendable {
    /// Whether anybody sees the lines. If not, callers skip costly lines.
    let isVisible: Bool
    private let hasColours: Bool
    private let lock = Lock()
    private var lines: [Line] = []
    /// The question on the last line, without a line end.
    private var question: String?
    private var hasEnded = false

    init(hasColours: Bool, isQuiet: Bool) {
        self.hasColours = hasColours
        isVisible = !isQuiet && isTerminal(STDERR_FILENO) && !TerminalTraits.ofThisProcess.isDumb
    }

    /// Shows these lines in place of the previous ones; at most one less than the terminal has rows. If the terminal is
    /// behind, the previous ones stay until the next call.
    func show(_ lines: [Line]) {
        guard isVisible, lines.isEmpty || !LineOutput.isBehind else { return }
        lock.withLock {
            guard !hasEnded, question == nil else { return }
            let old = self.lines.count
            self.lines = Array(lines.suffix(Self.size.rows - 1))
            LineOutput.enqueue(Self.erasing(old) + drawing(), to: STDERR_FILENO)
        }
    }

    /// Calls `body`, which writes whole lines to the terminal, above the live lines.
    func writeAbove(_ body: () -> Void) {
        lock.withLock {
            clear()
            body()
            if let question {
                LineOutput.enqueue(question, to: STDERR_FILENO)
            } else if isVisible, !lines.isEmpty {
                LineOutput.enqueue(drawing(), to: STDERR_FILENO)
            }
        }
    }

    /// Shows a question in place of the lines. Text in it that came from other peers cannot do harm.
    func showQuestion(_ text: String) {
        lock.withLock {
            clear()
            lines = []
            question = LineOutput.sanitized(text)
            LineOutput.enqueue(question ?? "", to: STDERR_FILENO)
        }
    }

    /// Removes the question. If it `isAnswered` at the terminal, the answer has already ended its line.
    func endQuestion(isAnswered: Bool) {
        lock.withLock {
            guard question != nil else { return }
            if !(isAnswered && isTerminal(STDIN_FILENO)) { clear() }
            question = nil
        }
    }

    /// Removes the lines for good.
    func end() {
        lock.withLock {
            clear()
            lines = []
            question = nil
            hasEnded = true
        }
    }

    /// Makes the last line free to write to.
    private func clear() {
        if question != nil {
            LineOutput.enqueue("\n", to: STDERR_FILENO)
        } else if isVisible, !lines.isEmpty {
            LineOutput.enqueue(Self.erasing(lines.count), to: STDERR_FILENO)
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
