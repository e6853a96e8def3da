import Glibc
import NighCore
import ProgramLife
import Terminal

/// The last lines of a terminal, which tell how things stand and change in place: on the standard error, and only where that is a
/// terminal. Elsewhere nothing of it is seen. In their place, a question stands on the last line, wherever that is written to: what is told
/// until it is answered gets lines of its own, and the question is asked again below.
///
/// Callable from any thread. `@unchecked Sendable`: what changes is guarded by the lock.
final class LiveRegion: @unchecked Sendable {
    /// Whether anybody sees it, so that whoever shows something costly may leave it.
    let isSeen: Bool
    private let hasColours: Bool
    private let lock = Lock()
    private var lines: [Line] = []
    /// What stands on the last line, without an end, for somebody to answer.
    private var question: String?
    private var hasEnded = false

    init(hasColours: Bool) {
        self.hasColours = hasColours
        isSeen = isTerminal(STDERR_FILENO) && !TerminalTraits.ofThisProcess.isDumb
    }

    /// Shows these lines, in place of those before; no more than the terminal has.
    func show(_ lines: [Line]) {
        guard isSeen else { return }
        lock.withLock {
            guard !hasEnded, question == nil else { return }
            let old = self.lines.count
            self.lines = Array(lines.suffix(Self.size.rows - 1))
            LineOutput.write(Self.erasing(old) + drawing(), to: STDERR_FILENO)
        }
    }

    /// Has `body` write whole lines to the terminal, above these.
    func aside(_ body: () -> Void) {
        lock.withLock {
            clear()
            body()
            if let question {
                LineOutput.write(question, to: STDERR_FILENO)
            } else if isSeen, !lines.isEmpty {
                LineOutput.write(drawing(), to: STDERR_FILENO)
            }
        }
    }

    /// Asks something in place of the lines; what strangers have put into it can do no harm.
    func ask(_ words: String) {
        lock.withLock {
            clear()
            lines = []
            question = LineOutput.harmless(words)
            LineOutput.write(question ?? "", to: STDERR_FILENO)
        }
    }

    /// The question stands no longer. Where it `isAnswered` by somebody at the terminal, they have ended its line.
    func endQuestion(isAnswered: Bool) {
        lock.withLock {
            guard question != nil else { return }
            if !(isAnswered && isTerminal(STDIN_FILENO)) { clear() }
            question = nil
        }
    }

    /// Takes them away for good.
    func end() {
        lock.withLock {
            clear()
            lines = []
            question = nil
            hasEnded = true
        }
    }

    /// Makes the last line one that can be written to.
    private func clear() {
        if question != nil {
            LineOutput.write("\n", to: STDERR_FILENO)
        } else if isSeen, !lines.isEmpty {
            LineOutput.write(Self.erasing(lines.count), to: STDERR_FILENO)
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
