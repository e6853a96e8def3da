import Arguments
import JSONText

/// `nigh errors`, and `nigh help errors`: every cause of an error, and what helps.
struct ErrorsErrand: Errand {
    let command = "errors"
    let output: OutputOptions

    static let description = Command<any Errand>(
        "errors", "Lists every cause of an error, and what helps",
        text: """
            An error says what was being done, why it failed, with whom and over what, and what helps: \
            "connecting to Puma over tcp: nobody listens there; start the program over there". In JSON the cause stands in \
            `cause`, as it is called here.


            """
                + CauseGuide.all.map { "\($0.label): \($0.meaning) What helps: \($0.advice)" }
                .joined(separator: "\n\n"),
        OutputOptions.options,
        examples: [Example("", "all of them in a list"), Example("--json", "for a program")]
    ) { ErrorsErrand(output: $0) }

    static let kind = Results.Kind("cause", plural: "causes")
    var kinds: [Results.Kind] { [Self.kind] }

    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus {
        for guide in CauseGuide.all {
            results.tell(
                Self.kind,
                [
                    .init("cause", .text(guide.label)), .init("meaning", .text(guide.meaning)),
                    .init("advice", .text(guide.advice)),
                ],
                words: [
                    Line(guide.label, .strong), "  " + Line(guide.meaning), "  " + Line(guide.advice, .good),
                ])
        }
        results.sumUp([.init("count", .integer(CauseGuide.all.count))], words: [])
        return .well
    }
}
