import JSONText
import NighCore

/// One line of the report of `nigh doctor`: the check, its verdict, and the remedy.
struct Finding: Hashable, Sendable {
    /// The name that scripts use, the same in every version, for example `tcp.multicast`.
    var id: String
    var subject: String
    var verdict: Diagnosis.Verdict
    var finding: String
    /// The remedy.
    var advice: String?
    /// How long the check took, if that says something.
    var duration: Duration?

    init(
        _ id: String, _ subject: String, _ verdict: Diagnosis.Verdict, _ finding: String,
        advice: String? = nil, duration: Duration? = nil
    ) {
        self.id = id
        self.subject = subject
        self.verdict = verdict
        self.finding = finding
        self.advice = advice
        self.duration = duration
    }

    /// Creates a finding about something that failed, or works only in part, in the words of `error`.
    init(_ id: String, _ subject: String, failed error: NighError, as verdict: Diagnosis.Verdict = .fail) {
        self.init(id, subject, verdict, "\(error.cause)", advice: error.advice)
    }

    /// Creates a finding from a transport's own diagnosis.
    init(_ diagnosis: Diagnosis, of scheme: String) {
        self.init(
            "\(scheme).\(diagnosis.id)", diagnosis.subject, diagnosis.verdict, diagnosis.finding,
            advice: diagnosis.advice)
    }

    /// The short code under which `nigh help` explains the check.
    var code: String? { CheckCode.code(of: id) }

    var members: [JSON.Member] {
        [
            .init("id", .text(id)), .init("code", JSON(code)), .init("subject", .text(subject)),
            .init("verdict", .text(verdict.rawValue)),
            .init("finding", .text(finding)), .init("advice", JSON(advice)),
            .init("duration_ms", duration.map { .number($0.milliseconds) } ?? .null),
        ]
    }

    private static let widthOfID = 22

    var lines: [Line] {
        let tint: Line.Tint =
            switch verdict {
            case .pass: .good
            case .warn: .warning
            case .fail: .bad
            }
        let span = duration.map { "  \(Moment.Span($0))" } ?? ""
        let line =
            Line(verdict.rawValue, tint) + "  " + Line(id, .faint).padded(to: Self.widthOfID) + "  "
            + Line("\(subject): ", .strong) + Line(finding) + Line(span, .faint)
        let more = verdict == .pass ? nil : code.map { Line("nigh help \($0)", .faint) }
        switch (advice.map { Line($0) }, more) {
        case (let advice?, let more?): return [line, Line("      → ", tint) + advice + "  " + more]
        case (let words?, nil), (nil, let words?): return [line, Line("      → ", tint) + words]
        case (nil, nil): return [line]
        }
    }
}

/// Reports each finding as it is found, and counts the verdicts. Used by one task.
final class FindingReporter {
    private let results: Results
    private(set) var counts: [Diagnosis.Verdict: Int] = [:]

    static let kind = Results.Kind("check", plural: "checks")

    init(_ results: Results) { self.results = results }

    func report(_ finding: Finding) {
        counts[finding.verdict, default: 0] += 1
        results.live.show([])
        results.report(Self.kind, finding.members, lines: finding.lines)
    }

    /// Shows the present check on a terminal.
    func showProgress(_ what: String) { results.live.show([Line("…     \(what)", .faint)]) }

    func count(_ verdict: Diagnosis.Verdict) -> Int { counts[verdict] ?? 0 }
}
