import Glibc

/// What happened, as lines with the time since the start; printed at once, so that nothing is missing when the lab is
/// killed.
final class Journal {
    private let start = ContinuousClock.now
    private let isQuiet: Bool

    init(isQuiet: Bool) { self.isQuiet = isQuiet }

    /// Since the journal began.
    var now: Duration { ContinuousClock.now - start }

    /// Adds a line about `subject`.
    func note(_ subject: String, _ words: String) {
        guard !isQuiet else { return }
        tell("\(Journal.seconds(now))  \(subject)  \(Journal.shortened(words))")
    }

    /// `line` with every PeerID as short as a person wants it.
    private static func shortened(_ line: String) -> String {
        line.split(separator: " ", omittingEmptySubsequences: false)
            .map { $0.utf8.count == 52 ? $0.prefix(8) : $0 }.joined(separator: " ")
    }

    /// Prints a line that is wanted also where the journal is not.
    func tell(_ line: String) {
        print(line)
        fflush(nil)
    }

    /// `12.345`, with room for three digits before the point.
    static func seconds(_ span: Duration) -> String {
        let milliseconds = Int(span / .milliseconds(1))
        let whole = String(milliseconds / 1_000)
        let part = String(1_000 + milliseconds % 1_000).dropFirst()
        return String(repeating: " ", count: max(0, 4 - whole.count)) + "\(whole).\(part)"
    }
}
