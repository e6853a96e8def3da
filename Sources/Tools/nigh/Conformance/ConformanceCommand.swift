import Arguments
import JSONText
import NighLoop
import NighTestKit
import SessionArguments

/// `nigh conformance`: checks a transport of this build against the contract of transports.
struct ConformanceCommand: Subcommand {
    let commandName = "conformance"
    let output: OutputOptions
    let rig: ConformanceRig
    /// The names of the checks to run; empty means all.
    let names: [String]
    /// Whether the command lists the checks and runs none.
    let onlyLists: Bool
    /// Whether sessions over the transport are checked, instead of the transport.
    let isOfSessions: Bool

    static let description = Command<any Subcommand>(
        "conformance", "Checks a transport against the contract of transports",
        text: """
            For authors of transports, and for checking a transport on this machine. It runs every check of the \
            conformance suite on transports that are made from SPEC. Most checks use two or more transports, which have to \
            reach each other. Several SPECs are the ends of one wire, for transports that need a device each: every \
            transport gets the first SPEC that no other one has, and from the first again when all are taken. An address \
            where nothing listens is found by letting one transport listen and end.

            A check that needs more ends or pipes than the wire has is skipped. A failure lists the transports that were \
            made, with the last error of each.

            On a real network the checks may disturb other programs: name an interface of your own, such as lo.
            """,
        OutputOptions.options,
        Option(flag: "list", "lists the checks and runs none"),
        Option(flag: "sessions", "checks sessions over the transport, instead of the transport itself"),
        Option(repeated: "only", .text("NAME"), "runs this check"),
        ConformanceRig.options, PluginChoice.options,
        Operand(
            repeated: "SPEC",
            .text("SPEC", candidates: .words(TransportRegistry.standard.entries.map(\.scheme))),
            "the transport, written as for --transport"),
        examples: [
            Example("memory", "the transport inside one process"),
            Example("tcp:interface=lo,mdns=embedded", "TCP without leaving this machine"),
            Example("bluetooth:adapter=hci0 bluetooth:adapter=hci1", "Bluetooth between two adapters"),
            Example(
                "serial:path=/dev/a serial:path=/dev/b --ends 2 --pipes 1",
                "a cable between two ports"),
        ]
    ) { output, onlyLists, isOfSessions, names, settings, plugins, specs in
        let known = (isOfSessions ? SessionConformance.checks : TransportConformance.checks).map(\.name)
        if let unknown = names.first(where: { !known.contains($0) }) {
            throw UsageError("there is no check \"\(unknown)\": --list shows all")
        }
        if specs.isEmpty, !onlyLists {
            throw UsageError("SPEC is missing: the transport, such as tcp:interface=lo")
        }
        return ConformanceCommand(
            output: output, rig: ConformanceRig(specs: specs, settings: settings, plugins: plugins),
            names: names,
            onlyLists: onlyLists, isOfSessions: isOfSessions)
    }

    static let kind = Results.Kind("check", plural: "checks")
    var kinds: [Results.Kind] { [Self.kind] }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        let all = isOfSessions ? SessionConformance.checks : TransportConformance.checks
        let checks = all.filter { names.isEmpty || names.contains($0.name) }
        if onlyLists {
            list(checks, results)
            return .success
        }
        let maker = try await rig.maker()
        var counts = (passed: 0, failed: 0, skipped: 0)
        var reasons: [String: Int] = [:]
        for (number, check) in checks.enumerated() {
            if stopRequest.isRequested { break }
            results.live.show([Line("\(number + 1) of \(checks.count): \(check.name)", .faint)])
            // The checks of the suite block.
            let outcome = await BlockingTask.run { check.run(maker) }
            switch outcome.verdict {
            case .passed: counts.passed += 1
            case .failed: counts.failed += 1
            case .skipped(let reason):
                counts.skipped += 1
                reasons[reason, default: 0] += 1
            }
            report(outcome, results)
        }
        results.summarize(
            [
                .init("passed", .integer(counts.passed)), .init("failed", .integer(counts.failed)),
                .init("skipped", .integer(counts.skipped)),
                .init("not_run", .integer(checks.count - counts.passed - counts.failed - counts.skipped)),
            ],
            lines: [
                "\(counts.passed) passed, \(counts.failed) failed, \(counts.skipped) skipped of \(checks.count)."
            ]
                + reasons.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map {
                    "\($0.value) skipped: \($0.key)."
                })
        return counts.failed == 0 && counts.passed > 0 && !stopRequest.isRequested ? .success : .failed
    }

    private func list(_ checks: [ConformanceCheck], _ results: Results) {
        let width = checks.map(\.name.count).max() ?? 0
        for check in checks {
            results.report(
                Self.kind,
                [
                    .init("name", .text(check.name)), .init("summary", .text(check.summary)),
                    .init(
                        "needs",
                        .object([
                            .init("ends", .integer(check.needs.ends)),
                            .init("pipes", .integer(check.needs.pipes)),
                            .init("silent_address", .bool(check.needs.silentAddress)),
                        ])),
                ],
                lines: [
                    Line(check.name, .strong).padded(to: width) + "  " + Line(check.summary)
                        + Line("; needs \(check.needs)", .faint)
                ])
        }
        results.summarize([.init("count", .integer(checks.count))], lines: [])
    }

    private func report(_ outcome: ConformanceReport.Outcome, _ results: Results) {
        let (word, detail, line): (String, String?, Line) =
            switch outcome.verdict {
            case .passed: ("passed", nil, Line("pass", .good) + "  " + Line(outcome.name))
            case .failed(let why):
                (
                    "failed", why,
                    Line("FAIL", .bad) + "  " + Line(outcome.name, .strong)
                        + Line(": \(why). What must hold: \(outcome.summary)")
                )
            case .skipped(let why):
                ("skipped", why, Line("skip", .warning) + "  " + Line(outcome.name) + Line(": \(why)"))
            }
        results.report(
            Self.kind,
            [
                .init("name", .text(outcome.name)), .init("summary", .text(outcome.summary)),
                .init("verdict", .text(word)), .init("detail", JSON(detail)),
                .init("duration_ms", .number(outcome.duration.milliseconds)),
                .init(
                    "transports",
                    .list(
                        outcome.transports.map {
                            .object([
                                .init("name", .text($0.name)), .init("end", .integer($0.end)),
                                .init("last_error", JSON($0.lastError?.description)),
                            ])
                        })),
            ], lines: [line] + outcome.transports.map { Line("      \($0)", .faint) })
    }
}
