import Glibc

/// A program that should notice a mutant.
struct Trial {
    enum Verdict: Equatable {
        case passed
        /// A mutant was noticed; the text says by what.
        case caught(String)
    }

    /// Limits of one run, because a mutant may loop forever and allocate each time.
    struct Limits {
        /// In seconds.
        var processorTime: Int
        /// In seconds. A mutant that waits forever takes no processor time. Leaves room for a busy machine.
        var time: Int
        /// The address space, in KiB.
        var memory = 8 << 20

        /// The limits for a program that takes `usual` seconds of processor time with no mutant switched on.
        init(usual: Int) {
            processorTime = 4 * usual + 5
            time = 16 * usual + 120
        }
    }

    let name: String
    let program: String
    let arguments: [String]
    var limits = Limits(usual: 60)

    /// Runs the program with one mutant switched on, or none for 0. Stops at the first failure.
    func run(mutant: Int) throws -> Verdict {
        // The process that writes the trace of a crash would keep the output open long after the end.
        let script = """
            ulimit -t \(limits.processorTime); ulimit -v \(limits.memory); ulimit -c 0
            export \(Schema.variable)=\(mutant) SWIFT_BACKTRACE=enable=no
            exec "$0" "$@"
            """
        let command = ShellCommand(script, arguments: [program] + arguments, timeLimit: limits.time)
        let (end, lines) = try command.run { $0.contains(Self.failure) }
        switch end {
        case .exit(0): return .passed
        case .exit(let status):
            return .caught(Self.short(lines.first { $0.hasPrefix("seed ") } ?? "status \(status)"))
        case .signal(SIGXCPU), .signal(SIGKILL): return .caught("it goes round for ever")
        case .signal: return .caught("it crashes")
        case .line(let line): return .caught(Self.short(line))
        case .timeout: return .caught("it never ends")
        }
    }

    /// The mark that the test runner puts before a failure.
    private static let failure = "✘"

    private static func short(_ line: String) -> String { String(line.prefix(160)) }
}
