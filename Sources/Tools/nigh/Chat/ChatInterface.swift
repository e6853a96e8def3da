import Glibc
import NighCore
import NighMemory
import Terminal

/// The user interface of a chat: reads typed lines and shows lines.
protocol ChatInterface: AnyObject, Sendable {
    /// Returns the next typed line; nil at the end of the input.
    func next() async -> String?
    /// Shows a line, if this interface shows lines itself.
    func show(_ line: Line)
    /// Restores the terminal, if it was taken over. Returns the lines that were shown on it.
    func stop() -> [Line]
}

/// Reads plain lines from the standard input. It shows no lines: the room reports them as results.
///
/// `@unchecked Sendable`: all mutable state is used on the reading thread only.
final class PlainChatInterface: ChatInterface, @unchecked Sendable {
    private let thread = ThreadEventLoop()
    private var unread: [UInt8] = []
    private var hasEnded = false

    /// The maximum length of a line in bytes; the rest of a longer one becomes another line.
    private static let longest = 64 << 10

    func next() async -> String? {
        // Reading may block forever, so the thread is not joined at the end.
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
                let end = hasEnded ? unread.count : Self.endOfScalars(in: unread)
                defer { unread.removeFirst(end) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            var bytes = [UInt8](repeating: 0, count: 4_096)
            let count = Glibc.read(STDIN_FILENO, &bytes, bytes.count)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN {
                // Another program with the same input has made it non-blocking.
                var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
                poll(&input, 1, -1)
                continue
            }
            hasEnded = count <= 0
            unread += bytes.prefix(max(count, 0))
        }
    }

    /// Returns where the last complete scalar of `bytes` ends, so that no incomplete scalar is cut.
    static func endOfScalars(in bytes: [UInt8]) -> Int {
        guard let start = bytes.suffix(4).lastIndex(where: { $0 & 0xC0 != 0x80 }), start > 0 else {
            return bytes.count
        }
        let length =
            switch bytes[start] {
            case 0xC0...0xDF: 2
            case 0xE0...0xEF: 3
            case 0xF0...0xF7: 4
            default: 1
            }
        return start + length > bytes.count ? start : bytes.count
    }
}

/// The lines that a terminal has shown, which are printed at the end. Bounded: the oldest ones go first.
struct ShownLines {
    private(set) var lines: [Line] = []
    private var columns = 0

    private static let mostLines = 10_000
    /// A column takes up to 24 bytes of memory.
    static let mostColumns = 1 << 20

    mutating func add(_ line: Line) {
        lines.append(line)
        columns += line.columns
        while lines.count > Self.mostLines || columns > Self.mostColumns {
            columns -= lines.removeFirst().columns
        }
    }
}

/// A terminal that shows the line being typed in its last row, and the chat above it. Lines that arrive do not break up
/// the line being typed.
///
/// `@unchecked Sendable`: the lock guards all mutable state.
final class TerminalChatInterface: ChatInterface, @unchecked Sendable {
    private let lock = Lock()
    private var editor = LineEditor(limit: ChatMessage.longestLine)
    private var log = ShownLines()
    private var terminal: TerminalSession?
    /// Whether Ctrl-C was pressed. The terminal's thread only.
    private var isInterrupted = false
    private let lines: AsyncStream<String>
    private let typed: AsyncStream<String>.Continuation

    private static let prompt = "> "

    /// Takes over the terminal. Throws if it cannot be drawn on.
    init() throws(TerminalFailure) {
        (lines, typed) = AsyncStream.makeStream()
        let terminal = try TerminalSession(mouse: false) { [weak self] in self?.handle($0) }
        lock.withLock { self.terminal = terminal }
        paint()
    }

    func next() async -> String? {
        for await line in lines { return line }
        return nil
    }

    func show(_ line: Line) {
        lock.withLock { log.add(line) }
        paint()
    }

    func stop() -> [Line] {
        let terminal = lock.withLock { self.terminal }
        terminal?.restore()
        return lock.withLock {
            self.terminal = nil
            return log.lines
        }
    }

    private func handle(_ event: TerminalEvent) {
        switch event {
        case .gone: typed.finish()
        case .resized: paint()
        case .input(let input):
            switch input {
            case .key(.enter):
                let line = lock.withLock { editor.take() }
                if !line.isEmpty { typed.yield(line) }
            // The first signal, after which the terminal is given back. So it makes the second one itself.
            case .control("c"):
                if !isInterrupted { kill(getpid(), SIGINT) }
                isInterrupted = true
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
        lock.withLock { Self.canvas(size, log.lines, editor) }
    }

    /// Draws the end of the log, and below it the line being typed.
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
