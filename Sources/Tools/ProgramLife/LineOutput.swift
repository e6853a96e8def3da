import Glibc
import NighCore

/// Lines on the standard output, each written whole and at once, so that pipes see them as they come.
///
/// `@unchecked Sendable`: `isBroken` is guarded by the lock.
public final class LineOutput: @unchecked Sendable {
    private let lock = Lock()
    private var isBroken = false
    /// Called once when nothing can be written any more.
    private let whenBroken: @Sendable () -> Void

    /// Lines of this program. From now on a reader that has gone does not end the program; `whenBroken` is called instead, as on a full disk.
    public init(whenBroken: @escaping @Sendable () -> Void) {
        self.whenBroken = whenBroken
        // A reader that has gone is an error like any other.
        signal(SIGPIPE, SIG_IGN)
    }

    /// Writes `words` as one line; from any thread.
    public func line(_ words: String) { lines([words]) }

    /// Writes lines between which no other comes, whatever is written on other threads.
    public func lines(_ lines: [String]) { harmlessLines(lines.map(Self.harmless)) }

    /// The same for lines in which nothing stands but what this program has put there, or `harmless` has gone over: they may
    /// have colours.
    public func harmlessLines(_ lines: [String]) {
        guard !lines.isEmpty else { return }
        let text = lines.map { "\($0)\n" }.joined()
        let breaks = lock.withLock {
            guard !isBroken else { return false }
            isBroken = !Self.write(text, to: STDOUT_FILENO)
            return isBroken
        }
        if breaks { whenBroken() }
    }

    /// Writes to the standard error what is wrong, behind the name of the program that says so.
    public static func complain(_ words: String, by program: String) {
        _ = write("\(program): \(harmless(words))\n", to: STDERR_FILENO)
    }

    /// What strangers say must not move the cursor or turn the text round.
    public static func harmless(_ words: String) -> String {
        String(
            String.UnicodeScalarView(
                words.unicodeScalars.map { scalar in
                    switch scalar.properties.generalCategory {
                    case .control, .format, .lineSeparator, .paragraphSeparator: "\u{FFFD}"
                    default: scalar
                    }
                }))
    }

    /// Writes all of `text`, which is harmless; false where it cannot be written.
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
