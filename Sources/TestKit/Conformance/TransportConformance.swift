import NighCore

/// Holds a transport to the contract that stands in `Transport` and `Pipe`: every check of ``TransportConformance``, each
/// on a rig of its own.
///
/// In a test it is one line, `#expect(checkTransportConformance { … }.isPassed)`; it needs no test framework, so that
/// a command can run it too. It blocks the calling thread until all is done.
///
/// - Parameter names: the checks to run; all when nil.
public func checkTransportConformance(
    only names: [String]? = nil, _ makeRig: () throws -> TransportRig
) -> ConformanceReport {
    let checks = TransportConformance.checks.filter { names?.contains($0.name) ?? true }
    return ConformanceReport(outcomes: checks.map { $0.run(makeRig) })
}

/// The checks there are.
public enum TransportConformance {
    /// All, in the order in which it makes sense to look at failures.
    public static let checks: [ConformanceCheck] =
        diallingChecks + streamChecks + pressureChecks + closingChecks + discoveryChecks + wholeChecks
}

/// One thing a transport has to get right.
public struct ConformanceCheck: Sendable, CustomStringConvertible {
    /// In a few words with hyphens.
    public let name: String
    /// What must hold.
    public let summary: String
    /// What it needs of a wire.
    public let needs: ConformanceNeeds

    private let body: @Sendable (Bench) throws -> Void

    init(
        _ name: String, _ summary: String, needs: ConformanceNeeds = ConformanceNeeds(),
        _ body: @escaping @Sendable (Bench) throws -> Void
    ) {
        self.name = name
        self.summary = summary
        self.needs = needs
        self.body = body
    }

    /// Its name.
    public var description: String { name }

    /// Runs it on a new rig; blocks until it is done.
    public func run(_ makeRig: () throws -> TransportRig) -> ConformanceReport.Outcome {
        let clock = ContinuousClock()
        let start = clock.now
        let (verdict, transports) = verdict(makeRig)
        return ConformanceReport.Outcome(
            name: name, summary: summary, verdict: verdict, transports: transports,
            duration: clock.now - start)
    }

    /// How it went, and which transports were made if it failed.
    private func verdict(
        _ makeRig: () throws -> TransportRig
    ) -> (ConformanceReport.Verdict, [ConformanceReport.UsedTransport]) {
        let bench: Bench
        do { bench = Bench(try makeRig()) } catch { return (.failed("no rig could be made: \(error)"), []) }
        if let shortage = needs.shortage(in: bench.rig) { return (.skipped("it needs \(shortage)"), []) }
        var problem: String?
        do {
            try body(bench)
        } catch let skip as Bench.Skip {
            bench.tearDown()
            return (.skipped(skip.words), [])
        } catch let failure as Bench.Failure {
            problem = failure.words
        } catch {
            problem = "\(error)"
        }
        let transports = bench.usedTransports()
        bench.tearDown()
        let problems = bench.violations + (problem.map { [$0] } ?? [])
        return problems.isEmpty ? (.passed, []) : (.failed(problems.joined(separator: "; ")), transports)
    }
}

/// How a transport did.
public struct ConformanceReport: Sendable, CustomStringConvertible {
    /// How one check went.
    public enum Verdict: Hashable, Sendable {
        /// The transport holds it.
        case passed
        /// It does not, in these words.
        case failed(String)
        /// It does not apply, for this reason.
        case skipped(String)
    }

    /// A transport that a check made.
    public struct UsedTransport: Hashable, Sendable, CustomStringConvertible {
        /// Which it was among all, and what it was for: "transport 1", "session 2, Host".
        public let name: String
        /// The end of the wire it was made on, from 0.
        public let end: Int
        /// The last error it told; nil if it told none.
        public let lastError: NighError?

        /// One line.
        public var description: String {
            "\(name), on end \(end): " + (lastError.map { "its last error: \($0)" } ?? "it told no error")
        }
    }

    /// One check and how it went.
    public struct Outcome: Hashable, Sendable, CustomStringConvertible {
        /// The check's name.
        public let name: String
        /// What must hold.
        public let summary: String
        /// How it went.
        public let verdict: Verdict
        /// The transports that it made, in that order, if it failed.
        public let transports: [UsedTransport]
        /// How long it took, in real time.
        public let duration: Duration

        /// Whether nothing is wrong.
        public var isPassed: Bool { if case .failed = verdict { false } else { true } }

        /// One line, and one more for each transport of a check that failed.
        public var description: String {
            let milliseconds = Moment.Span(duration).nanoseconds / 1_000_000
            return switch verdict {
            case .passed: "pass  \(name) (\(milliseconds) ms)"
            case .failed(let words):
                "FAIL  \(name) (\(milliseconds) ms): \(words). What must hold: \(summary)"
                    + transports.map { "\n      \($0)" }.joined()
            case .skipped(let words): "skip  \(name): \(words)"
            }
        }
    }

    /// Every check that was run, in order.
    public let outcomes: [Outcome]

    /// Whether no check failed and one was run at all.
    public var isPassed: Bool { !outcomes.isEmpty && outcomes.allSatisfy(\.isPassed) }

    /// A line for each check.
    public var description: String { outcomes.map(\.description).joined(separator: "\n") }
}
