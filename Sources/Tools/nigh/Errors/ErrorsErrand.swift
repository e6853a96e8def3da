import Arguments
import JSONText
import NighCore

/// `nigh errors` and `nigh help errors`: list every cause of an error, with the advice for it.
struct ErrorsErrand: Errand {
    let command = "errors"
    let output: OutputOptions

    /// The facts about every kind of cause.
    static let causes = NighError.Cause.kinds.map(\.facts)

    static let description = Command<any Errand>(
        "errors", "Lists every cause of an error, and what helps",
        text: """
            An error says what was being done, why it failed, with whom and over what, and what helps: \
            "connecting to Puma over tcp: nobody listens there; start the program over there". In JSON the cause stands in \
            `cause`, as it is called here.


            """
                + causes.map { "\($0.label): \($0.meaning) What helps: \($0.help)" }
                .joined(separator: "\n\n"),
        OutputOptions.options,
        examples: [Example("", "all of them in a list"), Example("--json", "for a program")]
    ) { ErrorsErrand(output: $0) }

    static let kind = Results.Kind("cause", plural: "causes")
    var kinds: [Results.Kind] { [Self.kind] }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        for cause in Self.causes {
            results.tell(
                Self.kind,
                [
                    .init("cause", .text(cause.label)), .init("meaning", .text(cause.meaning)),
                    .init("advice", .text(cause.help)),
                ],
                words: [
                    Line(cause.label, .strong), "  " + Line(cause.meaning), "  " + Line(cause.help, .good),
                ])
        }
        results.sumUp([.init("count", .integer(Self.causes.count))], words: [])
        return .well
    }
}
