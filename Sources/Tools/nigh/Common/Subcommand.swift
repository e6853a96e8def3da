import Arguments

/// One command line of `nigh`: made by the parser, run once.
protocol Subcommand: Sendable {
    /// The name of the command, for example `ping`.
    var commandName: String { get }

    /// The form in which the command reports its results.
    var output: OutputOptions { get }

    /// The kinds of items that the command reports, so that the JSON object has an empty list for a kind without items.
    var kinds: [Results.Kind] { get }

    /// Runs the command. The caller reports a thrown error, in words and, if the user asked for it, as JSON. A
    /// `UsageError` ends the program with the exit status of misuse.
    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus
}

extension Subcommand {
    var kinds: [Results.Kind] { [] }
}

/// The exit status of `nigh`; scripts rely on it.
enum ExitStatus: Int32, Sendable {
    /// Everything succeeded.
    case success = 0
    /// Something failed, or nobody replied.
    case failed = 1
    /// The command line was wrong.
    case misuse = 2
    /// None of the transports that were asked for works here.
    case unavailable = 3
    /// Everything was measured, and a given threshold is missed.
    case missed = 4
}
