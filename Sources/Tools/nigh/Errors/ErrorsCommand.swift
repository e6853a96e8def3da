import Arguments
import JSONText
import NighCore

/// `nigh errors` and `nigh help errors`: list every cause of an error, with the advice for it.
struct ErrorsCommand: Subcommand {
    let commandName = "errors"
    let output: OutputOptions

    /// Every kind of cause, with its explanation.
    static let causes: [(label: String, explanation: CauseExplanation)] =
        NighError.Cause.kinds.map(\.label).compactMap { label in
            CauseExplanation.byLabel[label].map { (label: label, explanation: $0) }
        }

    static let description = Command<any Subcommand>(
        "errors", "Lists every cause of an error, and what to do",
        text: """
            An error says what was being done, with which peer, over which transport, why it failed, and what to do: \
            "connecting to Puma over tcp: nobody listens there; start the program on the other device". In JSON, the \
            member `cause` has one of the names below.


            """
                + causes.map { label, explanation in
                    "\(label): \(explanation.meaning) What to do: \(explanation.help)"
                        + (CheckCode.code(ofCause: label).map { " More: `nigh help \($0)`." } ?? "")
                }
                .joined(separator: "\n\n"),
        OutputOptions.options,
        examples: [Example("", "lists all of them"), Example("--json", "prints them for a program")]
    ) { ErrorsCommand(output: $0) }

    static let kind = Results.Kind("cause", plural: "causes")
    var kinds: [Results.Kind] { [Self.kind] }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        for (label, explanation) in Self.causes {
            results.report(
                Self.kind,
                [
                    .init("cause", .text(label)), .init("meaning", .text(explanation.meaning)),
                    .init("advice", .text(explanation.help)),
                    .init("code", JSON(CheckCode.code(ofCause: label))),
                ],
                lines: [
                    Line(label, .strong), "  " + Line(explanation.meaning),
                    "  " + Line(explanation.help, .good),
                ]
                    + (CheckCode.code(ofCause: label).map { [Line("  nigh help \($0)", .faint)] } ?? [])
            )
        }
        results.summarize([.init("count", .integer(Self.causes.count))], lines: [])
        return .success
    }
}
