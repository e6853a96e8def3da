import Arguments
import NighLoop
import ProgramSupport
import SessionArguments
import Terminal

/// The `nigh` program: its table of commands, and the code that runs one of them.
enum NighProgram {
    static let name = "nigh"

    static let table: Program<any Subcommand> = Program(
        Command<any Subcommand>(
            name, "See what a link is doing: find peers, measure, send files, show what passes",
            text: """
                For devices that do not find each other, or whose connection is slow or breaks. Start with `nigh doctor`. Then run \
                `nigh discover` on one device while a program runs on the other, or `nigh host` on one and `nigh ping` on the other.
                """,
            subcommands: [
                DoctorCommand.description,
                TransportsCommand.description,
                DiscoverCommand.description,
                HostCommand.description,
                PingCommand.description,
                BenchCommand.description,
                SendCommand.description,
                ReceiveCommand.description,
                TransfersCommand.description,
                ChatCommand.description,
                TraceCommand.description,
                InjectCommand.description,
                IdentityCommand.description,
                PairCommand.description,
                PeersCommand.description,
                ConformanceCommand.description,
                ErrorsCommand.description,
                PrintCommand.completion, PrintCommand.manual,
            ]),
        version: NighVersion.text,
        sections: [
            Section(
                "Guides",
                "`nigh help guides` lists the guides, and `nigh help GUIDE` shows one. `nigh help N17` explains a check of the "
                    + "doctor. `nigh help --open` opens all pages in a browser."
            ),
            Section(
                "Exit status",
                "0 on success, 1 if something failed or no peer replied, 2 if the command line is wrong, 3 if none of the requested "
                    + "transports works here or the system has too few descriptors or threads for any command, 4 if a given "
                    + "threshold is missed."
            ),
            Section(
                "Output",
                "Results go to the standard output. Everything else goes to the standard error; lines that change in place "
                    + "appear only at a terminal. With --json the results are one JSON object, with --json-lines one object "
                    + "per line; docs/reference/schemas has the schemas."
            ),
            Section(
                "Environment",
                "NO_COLOR, if it is not empty, turns colours off. XDG_DATA_HOME is the folder under which your identity, the "
                    + "peers you know, your unfinished sends and your plugins are kept. NIGH_PLUGIN_PATH lists the folders to "
                    + "search for plugins instead of the default ones."),
        ])

    /// Reports that the system has too few descriptors or threads for any command, in the output form that was asked
    /// for. Returns the exit status.
    static func reportShortage(_ shortage: NighError, _ command: any Subcommand) -> Int32 {
        Results(of: command.commandName, command.output, kinds: command.kinds, onFailure: {}).fail(shortage)
        return ExitStatus.unavailable.rawValue
    }

    /// Returns the command that the arguments ask for. If they ask for help or contain a mistake, prints that and ends
    /// the program.
    static func parse(_ arguments: [String]) -> any Subcommand {
        table.parseOrExit(arguments, as: name, width: TerminalWidth.forHelp)
    }

    static func run(_ command: any Subcommand) async -> Int32 {
        let interruption = Interruption()
        let results = Results(
            of: command.commandName, command.output, kinds: command.kinds,
            onFailure: { interruption.request() })
        do {
            return try await command.run(results, interruption).rawValue
        } catch let usageError as UsageError {
            results.fail(usageError.addingReference(to: "\(name) \(command.commandName) --help"))
            return UsageError.status
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
