import ChildPrograms
import Glibc

/// A program that should notice a mutant.
struct Trial {
    enum Verdict: Equatable {
        case passed
        /// A mutant was noticed; the text says by what.
        case caught(String)
    }

    let name: String
    let program: String
    let arguments: [String]
    /// The processor time it takes with no mutant switched on, in seconds.
    var usual = 60

    /// Limits the processor time and memory of a mutant, because it may loop forever and allocate each time.
    private var limits: String { "ulimit -t \(4 * usual + 5); ulimit -v 8388608; ulimit -c 0" }
    /// The time limit in seconds, because a mutant that waits forever takes no processor time. It leaves room for a
    /// busy machine.
    private var patience: Int { 8 * usual + 60 }

    /// Runs the program with one mutant switched on, or none for 0. Stops at the first failure.
    func run(mutant: Int) throws -> Verdict {
        let child = try Child(
            "/bin/sh", ["-c", "\(limits); exec \"$0\" \"$@\" 2>&1", program] + arguments,
            // The process that writes the trace of a crash would keep the output open long after the end.
            environment: [Schema.variable: "\(mutant)", "SWIFT_BACKTRACE": "enable=no"], patience: patience)
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

    /// The mark that the test runner puts before a failure.
    private static let failure = "✘"

    private static func short(_ line: String) -> String { String(line.prefix(160)) }
}
