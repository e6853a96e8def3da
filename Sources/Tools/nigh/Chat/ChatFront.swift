import Glibc
import NighCore
import NighMemory
import Terminal

/// Where lines are typed, and shown.
protocol ChatFront: AnyObject, Sendable {
    /// What was typed next; nil at the end.
    func next() async -> String?
    /// Shows a line, if it is here that lines are shown.
    func show(_ line: Line)
    /// Gives the terminal back, if it was taken; returns what was shown on it.
    func stop() -> [Line]
}

/// Plain lines of the standard input. What is shown is told as results are.
///
/// `@unchecked Sendable`: what changes is touched on the reading thread alone.
final class PlainChatFront: ChatFront, @unchecked Sendable {
    private let thread = ThreadEventLoop()
    private var unread: [UInt8] = []
    private var hasEnded = false

    /// Nobody types that much on a line; what is more begins another.
    private static let longest = 64 << 10

    func next() async -> String? {
        // That may take for ever; the thread is not waited for at the end.
        await withCheckedContinuation { continuation in
            thread.execute { [self] in continuation.resume(returning: read()) }
        }
    }

    func show(_ line: Line) {}

    func stop() -> [Line] { [] }

    private func read() -> String? {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                defer { unread.removeFirst(end + 1) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            if hasEnded || unread.count > Self.longest {
                guard !unread.isEmpty else { return nil }
                defer { unread = [] }
                return String(decoding: unread, as: UTF8.self)
            }
            var bytes = [UInt8](repeating: 0, count: 4_096)
            let count = Glibc.read(STDIN_FILENO, &bytes, bytes.count)
            if count < 0, errno == EINTR { continue }
            hasEnded = count <= 0
            unread += bytes.prefix(max(count, 0))
        }
    }
}

/// A terminal whose last row is the line that is being typed; above it is what was said. Nothing tears that line apart.
///
/// `@unchecked Sendable`: what changes is guarded by the lock.
final class TerminalChatFront: ChatFront, @unchecked Sendable {
    private let lock = Lock()
    private var editor = LineEditor(limit: ChatMessage.longestLine)
    private var log: [Line] = []
    private var terminal: TerminalSession?
    private let lines: AsyncStream<String>
    private let typed: AsyncStream<String>.Continuation

    /// How many lines are kept for the end.
    private static let longestLog = 10_000
    private static let prompt = "> "

    /// Takes the terminal. Fails where it cannot be drawn on.
    init() throws(TerminalFailure) {
        (lines, typed) = AsyncStream.makeStream()
        let terminal = try TerminalSession(mouse: false) { [weak self] in self?.took($0) }
        lock.withLock { self.terminal = terminal }
        paint()
    }

    func next() async -> String? {
        for await line in lines { return line }
        return nil
    }

    func show(_ line: Line) {
        lock.withLock {
            log.append(line)
            if log.count > Self.longestLog { log.removeFirst() }
        }
        paint()
    }

    func stop() -> [Line] {
        let terminal = lock.withLock { self.terminal }
        terminal?.restore()
        return lock.withLock {
            self.terminal = nil
            return log
        }
    }

    private func took(_ event: TerminalEvent) {
        switch event {
        case .gone: typed.finish()
        case .resized: paint()
        case .input(let input):
            switch input {
            case .key(.enter):
                let line = lock.withLock { editor.take() }
                if !line.isEmpty { typed.yield(line) }
            case .control("c"): typed.finish()
            case .control("d") where lock.withLock({ editor.isEmpty }): typed.finish()
            case .control("z"): lock.withLock { terminal }?.suspend()
            default: _ = lock.withLock { editor.handle(input) }
            }
            paint()
        }
    }

    private func paint() {
        lock.withLock { terminal }?.paint { [weak self] size in self?.canvas(size) ?? Canvas(size) }
    }

    private func canvas(_ size: TerminalSize) -> Canvas {
        lock.withLock { Self.canvas(size, log, editor) }
    }

    /// What it looks like: the end of the log, and below it the line that is being typed.
    static func canvas(_ size: TerminalSize, _ log: [Line], _ editor: LineEditor) -> Canvas {
        var canvas = Canvas(size)
        let last = max(size.rows - 1, 0)
        var row = last - 1
        lines: for line in log.reversed() {
            for piece in CellText(line.text(colours: false)).lines(of: max(size.columns, 1)).reversed() {
                guard row >= 0 else { break lines }
                canvas.write(piece.string, at: CellPosition(column: 0, row: row))
                row -= 1
            }
        }
        canvas.write(prompt, at: CellPosition(column: 0, row: last), .dim)
        editor.draw(
            into: &canvas, at: CellPosition(column: prompt.count, row: last),
            columns: size.columns - prompt.count)
        return canvas
    }
}
