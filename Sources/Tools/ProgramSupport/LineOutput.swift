import Glibc
import NighCore

/// Writes lines to the standard output, each whole and as soon as its reader takes it, so that pipes see them as they
/// come.
///
/// `@unchecked Sendable`: `isBroken` is guarded by the lock.
public final class LineOutput: @unchecked Sendable {
    private let lock = Lock()
    private var isBroken = false
    /// Called once when nothing can be written any more.
    private let onFailure: @Sendable () -> Void

    /// Creates the output of this program.
    ///
    /// From now on, the program does not end when its reader has gone. `onFailure` is called instead, as it is when
    /// the disk is full.
    public init(onFailure: @escaping @Sendable () -> Void) {
        self.onFailure = onFailure
        // A reader that has gone is an error like any other.
        signal(SIGPIPE, SIG_IGN)
        OutputThread.shared.start()
    }

    /// Writes `text` as one line. Any thread may call this.
    public func line(_ text: String) { lines([text]) }

    /// Writes lines without a line of another thread between them.
    public func lines(_ lines: [String]) { writeSanitized(lines.map(Self.sanitized)) }

    /// Writes lines as they are. They may contain colours, but only text of this program and text that `sanitized`
    /// returned.
    public func writeSanitized(_ lines: [String]) {
        guard !lines.isEmpty else { return }
        let text = lines.map { "\($0)\n" }.joined()
        OutputThread.shared.write(text.utf8.count) { [self] in
            let breaks = lock.withLock {
                guard !isBroken else { return false }
                isBroken = !Self.write(text, to: STDOUT_FILENO)
                return isBroken
            }
            if breaks { onFailure() }
        }
    }

    /// Writes an error to the standard error, after the name of the program and after all lines before it.
    public static func printError(_ text: String, by program: String) {
        enqueue("\(program): \(sanitized(text))\n", to: STDERR_FILENO)
    }

    /// Writes `text`, which must be sanitized, after all lines before it. Once there is a `LineOutput`, the caller does
    /// not wait for that, unless more than 1 MiB is not written yet.
    public static func enqueue(_ text: String, to descriptor: Int32) {
        OutputThread.shared.write(text.utf8.count) { write(text, to: descriptor) }
    }

    /// Waits until all lines before are written.
    public static func flush() { OutputThread.shared.flush() }

    /// Whether the reader of the lines is slow, or does not read.
    public static var isBehind: Bool { OutputThread.shared.isBehind }

    /// Replaces the characters with which text of other peers could move the cursor or reverse the order of reading.
    public static func sanitized(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    switch scalar.properties.generalCategory {
                    case .control, .format, .lineSeparator, .paragraphSeparator: "\u{FFFD}"
                    default: scalar
                    }
                }))
    }

    /// Writes all of `text`, which must be sanitized, at once. Returns false if it cannot be written.
    @discardableResult
    public static func write(_ text: String, to descriptor: Int32) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)[...]
            while !rest.isEmpty {
                let part = UnsafeRawBufferPointer(rebasing: rest)
                let count = Glibc.write(descriptor, part.baseAddress, part.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    if descriptor == STDOUT_FILENO { StandardStreams.outputFailed(errno) }
                    return false
                }
                rest = rest.dropFirst(count)
            }
            return true
        }
    }
}
