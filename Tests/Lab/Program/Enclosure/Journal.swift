import Glibc

/// Prints what happens, as lines with the time since the start. Each line is printed at once, so that nothing
/// is missing when the lab is killed.
final class Journal {
    private let start = ContinuousClock.now
    private let isQuiet: Bool

    init(isQuiet: Bool) { self.isQuiet = isQuiet }

    /// The time since the start.
    var now: Duration { ContinuousClock.now - start }

    /// Prints a line about `subject`, unless the journal is quiet.
    func note(_ subject: String, _ text: String) {
        guard !isQuiet else { return }
        writeLine("\(Journal.seconds(now))  \(subject)  \(Journal.shortened(text))")
    }

    /// Returns `line` with every PeerID shortened.
    private static func shortened(_ line: String) -> String {
        line.split(separator: " ", omittingEmptySubsequences: false)
            .map { $0.utf8.count == 52 ? $0.prefix(8) : $0 }.joined(separator: " ")
    }

    /// Prints a line even if the journal is quiet.
    func writeLine(_ line: String) {
        print(line)
        fflush(nil)
    }

    /// Formats a time as `12.345`, with room for three digits before the point.
    static func seconds(_ span: Duration) -> String {
        let milliseconds = Int(span / .milliseconds(1))
        let whole = String(milliseconds / 1_000)
        let part = String(1_000 + milliseconds % 1_000).dropFirst()
        return String(repeating: " ", count: max(0, 4 - whole.count)) + "\(whole).\(part)"
    }
}

extension Duration {
    /// Seconds, with three digits behind the point.
    var written: String { String(Journal.seconds(self).drop { $0 == " " }) }
}
