import Arguments

/// What one command line of `nigh` asks for: made by the parser, carried out once.
protocol Errand: Sendable {
    /// The name of the command, as in `ping`.
    var command: String { get }

    /// How its results are told.
    var output: OutputOptions { get }

    /// What its results are of, so that a list of them is there where there are none.
    var kinds: [Results.Kind] { get }

    /// Does it. What is thrown is told by the caller, in words and, where that was asked for, as JSON; a `Misuse` ends the
    /// program with the status of one.
    func run(_ results: Results, _ interruption: Interruption) async throws -> ExitStatus
}

extension Errand {
    var kinds: [Results.Kind] { [] }
}

/// How `nigh` ends; scripts rely on it.
enum ExitStatus: Int32, Sendable {
    /// All went well.
    case well = 0
    /// Something failed, or nobody replied.
    case failed = 1
    /// The call was wrong.
    case misuse = 2
    /// No transport that was asked for works here.
    case unavailable = 3
    /// Everything was measured, and a threshold that was given is missed.
    case missed = 4
}
