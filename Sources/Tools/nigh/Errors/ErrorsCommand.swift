import Arguments
import JSONText
import NighCore

/// `nigh errors` and `nigh help errors`: list every cause of an error, with the advice for it.
struct ErrorsCommand: Subcommand {
    let commandName = "errors"
    let output: OutputOptions

    /// The facts about every kind of cause.
    static let causes = NighError.Cause.kinds.map(\.facts)

    static let description = Command<any Subcommand>(
        "errors", "Lists every cause of an error, and what to do",
        text: """
            An error says what was being done, with which peer, over which transport, why it failed, and what to do: \
            "connecting to Puma over tcp: nobody listens there; start the program on the other device". In JSON, the \
            member `cause` has one of the names below.


            """
                + causes.map { cause in
                    "\(cause.label): \(cause.meaning) What to do: \(cause.help)"
                        + (CheckCode.code(ofCause: cause.label).map { " More: `nigh help \($0)`." } ?? "")
                }
                .joined(separator: "\n\n"),
        OutputOptions.options,
        examples: [Example("", "lists all of them"), Example("--json", "prints them for a program")]
    ) { ErrorsCommand(output: $0) }

    static let kind = Results.Kind("cause", plural: "causes")
    var kinds: [Results.Kind] { [Self.kind] }

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        for cause in Self.causes {
            results.report(
                Self.kind,
                [
                    .init("cause", .text(cause.label)), .init("meaning", .text(cause.meaning)),
                    .init("advice", .text(cause.help)),
                    .init("code", JSON(CheckCode.code(ofCause: cause.label))),
                ],
                lines: [
                    Line(cause.label, .strong), "  " + Line(cause.meaning), "  " + Line(cause.help, .good),
                ]
                    + (CheckCode.code(ofCause: cause.label).map { [Line("  nigh help \($0)", .faint)] } ?? [])
            )
        }
        results.summarize([.init("count", .integer(Self.causes.count))], lines: [])
        return .success
    }
}
