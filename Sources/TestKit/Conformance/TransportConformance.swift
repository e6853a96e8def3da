import NighCore

/// Checks a transport against the contract in `Transport` and `Pipe`. Runs the checks of ``TransportConformance``, each
/// on a rig of its own.
///
/// In a test it is one line, `#expect(checkTransportConformance { … }.isPassed)`. It needs no test framework, so a
/// command can run it too. It blocks the calling thread until all checks are done.
///
/// - Parameter names: the checks to run; all if nil.
public func checkTransportConformance(
    only names: [String]? = nil, _ makeRig: () throws -> TransportRig
) -> ConformanceReport {
    let checks = TransportConformance.checks.filter { names?.contains($0.name) ?? true }
    return ConformanceReport(outcomes: checks.map { $0.run(makeRig) })
}

/// The conformance checks for transports.
public enum TransportConformance {
    /// All checks, in the order in which failures are best investigated.
    public static let checks: [ConformanceCheck] =
        diallingChecks + streamChecks + backPressureChecks + closingChecks + packetChecks + discoveryChecks
        + generalChecks
}

/// One check of a conformance suite, for one requirement.
public struct ConformanceCheck: Sendable, CustomStringConvertible {
    /// The name: a few words with hyphens.
    public let name: String
    /// The requirement that must hold.
    public let summary: String
    /// The properties of the wire that the check needs.
    public let needs: ConformanceNeeds

    private let body: @Sendable (Testbed) throws -> Void

    init(
        _ name: String, _ summary: String, needs: ConformanceNeeds = ConformanceNeeds(),
        _ body: @escaping @Sendable (Testbed) throws -> Void
    ) {
        self.name = name
        self.summary = summary
        self.needs = needs
        self.body = body
    }

    /// The check's name.
    public var description: String { name }

    /// Runs the check on a new rig. Blocks until it is done.
    public func run(_ makeRig: () throws -> TransportRig) -> ConformanceReport.Outcome {
        let clock = ContinuousClock()
        let start = clock.now
        let (verdict, transports) = verdict(makeRig)
        return ConformanceReport.Outcome(
            name: name, summary: summary, verdict: verdict, transports: transports,
            duration: clock.now - start)
    }

    /// Returns the verdict and, if the check failed, the transports that it made.
    private func verdict(
        _ makeRig: () throws -> TransportRig
    ) -> (ConformanceReport.Verdict, [ConformanceReport.UsedTransport]) {
        let testbed: Testbed
        do { testbed = Testbed(try makeRig()) } catch {
            return (.failed("the rig could not be made: \(error)"), [])
        }
        if let missing = needs.missing(in: testbed.rig) { return (.skipped("it needs \(missing)"), []) }
        var problem: String?
        do {
            try body(testbed)
        } catch let skip as Testbed.Skip {
            testbed.tearDown()
            return (.skipped(skip.reason), [])
        } catch let failure as Testbed.Failure {
            problem = failure.message
        } catch {
            problem = "\(error)"
        }
        let transports = testbed.usedTransports()
        testbed.tearDown()
        let problems = testbed.violations + (problem.map { [$0] } ?? [])
        return problems.isEmpty ? (.passed, []) : (.failed(problems.joined(separator: "; ")), transports)
    }
}

/// The results of the checks that were run.
public struct ConformanceReport: Sendable, CustomStringConvertible {
    /// The result of one check.
    public enum Verdict: Hashable, Sendable {
        /// The requirement holds.
        case passed
        /// The requirement does not hold, for this reason.
        case failed(String)
        /// The check does not apply, for this reason.
        case skipped(String)
    }

    /// A transport that a check made.
    public struct UsedTransport: Hashable, Sendable, CustomStringConvertible {
        /// Its number among all and its purpose: "transport 1", "session 2, Host".
        public let name: String
        /// The end of the wire that it was made on; ends count from 0.
        public let end: Int
        /// The last error that it reported; nil if it reported none.
        public let lastError: NighError?

        /// One line with the name, the end and the last error.
        public var description: String {
            "\(name), on end \(end): " + (lastError.map { "its last error: \($0)" } ?? "it reported no error")
        }
    }

    /// One check and its result.
    public struct Outcome: Hashable, Sendable, CustomStringConvertible {
        /// The check's name.
        public let name: String
        /// The promise that the check tests.
        public let summary: String
        /// The result of the check.
        public let verdict: Verdict
        /// The transports that the check made, in that order, if it failed; otherwise none.
        public let transports: [UsedTransport]
        /// The duration of the check, in real time.
        public let duration: Duration

        /// Whether the check passed or was skipped.
        public var isPassed: Bool { if case .failed = verdict { false } else { true } }

        /// One line, plus one for each transport of a check that failed.
        public var description: String {
            let milliseconds = Moment.Span(duration).nanoseconds / 1_000_000
            return switch verdict {
            case .passed: "pass  \(name) (\(milliseconds) ms)"
            case .failed(let reason):
                "FAIL  \(name) (\(milliseconds) ms): \(reason). What must hold: \(summary)"
                    + transports.map { "\n      \($0)" }.joined()
            case .skipped(let reason): "skip  \(name): \(reason)"
            }
        }
    }

    /// The outcomes of all checks that were run, in order.
    public let outcomes: [Outcome]

    /// Whether at least one check was run and none failed.
    public var isPassed: Bool {
        let hasRun = outcomes.contains { if case .passed = $0.verdict { true } else { false } }
        return hasRun && outcomes.allSatisfy(\.isPassed)
    }

    /// The descriptions of all outcomes, one below the other.
    public var description: String { outcomes.map(\.description).joined(separator: "\n") }
}
