import ChildPrograms
import Glibc

/// A program that is to notice a mutant.
struct Trial {
    enum Verdict: Equatable {
        case passed
        /// Noticed, by what.
        case caught(String)
    }

    let name: String
    let program: String
    let arguments: [String]
    /// How long it takes with nothing changed, in seconds of processor time.
    var usual = 60

    /// The most processor time and memory a mutant is given: it may go round for ever and take more each time.
    private var limits: String { "ulimit -t \(4 * usual + 5); ulimit -v 8388608; ulimit -c 0" }
    /// One that waits for ever takes no processor time. The machine may be busy otherwise.
    private var patience: Int { 20 * usual + 120 }

    /// Runs it with one mutant switched on, 0 for none, and stops at the first failure.
    func run(mutant: Int) throws -> Verdict {
        let child = try Child(
            "/bin/sh", ["-c", "\(limits); exec \"$0\" \"$@\" 2>&1", program] + arguments,
            environment: [Schema.variable: "\(mutant)"], patience: patience)
        if let line = try? child.line(with: Self.failure) { return .caught(Self.short(line)) }
        guard let end = try? child.end() else { return .caught("it never ends") }
        switch end.status {
        case 0: return .passed
        case -SIGXCPU, -SIGKILL: return .caught("it goes round for ever")
        case ..<0: return .caught("it crashes")
        default:
            return .caught(Self.short(child.lines.first { $0.hasPrefix("seed ") } ?? "status \(end.status)"))
        }
    }

    /// What the test runner puts before a failure.
    private static let failure = "✘"

    private static func short(_ line: String) -> String { String(line.prefix(160)) }
}
