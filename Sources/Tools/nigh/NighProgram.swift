import Arguments
import NighLoop
import ProgramLife
import Terminal

/// The `nigh` program: its table of commands, and the code that runs one of them.
enum NighProgram {
    static let name = "nigh"

    static let table: Program<any Errand> = Program(
        Command<any Errand>(
            name, "See what a link is doing: find peers, measure, send, watch what passes",
            text: """
                For people whose devices do not find each other, are slow, or drop. Start with `nigh doctor`. Then `nigh discover` on \
                one device while a program runs on the other; or `nigh host` on one and `nigh ping` on the other.
                """,
            subcommands: [
                DoctorErrand.description,
                TransportsErrand.description,
                DiscoverErrand.description,
                HostErrand.description,
                PingErrand.description,
                BenchErrand.description,
                SendErrand.description,
                ReceiveErrand.description,
                ChatErrand.description,
                TraceErrand.description,
                InjectErrand.description,
                IdentityErrand.description,
                PairErrand.description,
                PeersErrand.description,
                ConformanceErrand.description,
                ErrorsErrand.description,
                PrintErrand.completion, PrintErrand.manual,
            ]),
        sections: [
            Section(
                "Exit status",
                "0 when all went well, 1 when something failed or nobody replied, 2 when the call was wrong, 3 when no transport that "
                    + "was asked for works here or the system has too few descriptors or threads for any, 4 when a threshold was given and missed."
            ),
            Section(
                "Output",
                "Results go to the standard output, what happens meanwhile to the standard error, and there only at a terminal. With "
                    + "--json the results are one JSON object, with --json-lines one a line; docs/schemas has their schemas."
            ),
            Section(
                "Environment",
                "NO_COLOR, when it is not empty, leaves colours out. XDG_DATA_HOME says where your identity, the peers you know "
                    + "and your plugins are kept. NIGH_PLUGIN_PATH lists the folders where plugins are looked for, instead of the "
                    + "usual ones."),
        ])

    /// Reports that the system has too few descriptors or threads for any command, in the output form that was asked
    /// for. Returns the exit status.
    static func refuse(_ arguments: [String], _ shortage: NighError) -> Int32 {
        if case .action(let errand)? = try? table.parse(arguments, width: TerminalWidth.forHelp) {
            Results(of: errand.command, errand.output, kinds: errand.kinds, whenBroken: {}).fail(shortage)
        } else {
            LineOutput.complain("\(shortage)", by: name)
        }
        return ExitStatus.unavailable.rawValue
    }

    static func run(_ arguments: [String]) async -> Int32 {
        let errand = table.parseOrExit(arguments, as: name, width: TerminalWidth.forHelp)
        let interruption = Interruption()
        let results = Results(
            of: errand.command, errand.output, kinds: errand.kinds, whenBroken: { interruption.come() })
        do {
            return try await errand.run(results, interruption).rawValue
        } catch let misuse as Misuse {
            results.fail(misuse.pointing(to: "\(name) \(errand.command) --help"))
            return Misuse.status
        } catch let error as TransportsUnavailable {
            results.fail(error)
            return ExitStatus.unavailable.rawValue
        } catch is CancellationError {
            results.fail(Interrupted())
            return ExitStatus.failed.rawValue
        } catch {
            results.fail(error)
            return ExitStatus.failed.rawValue
        }
    }
}

/// The error of a command that was interrupted before it had anything to summarize.
struct Interrupted: Error, CustomStringConvertible {
    var description: String { "interrupted" }
}
