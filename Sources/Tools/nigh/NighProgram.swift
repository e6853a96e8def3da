import Arguments
import Glibc
import NighLoop
import ProgramSupport
import SessionArguments
import Terminal

/// The `nigh` program: its table of commands, and the code that runs one of them.
enum NighProgram {
    static let name = "nigh"

    static let table: Program<any Subcommand> = Program(
        Command<any Subcommand>(
            name, "Sends files, finds people nearby, and shows what a link does",
            subcommands: [
                SendCommand.description.grouped(under: files),
                ReceiveCommand.description.grouped(under: files),
                TransfersCommand.description.grouped(under: files),
                ClipCommand.description.grouped(under: files),
                ForwardCommand.description.grouped(under: files),
                ConnectCommand.description.grouped(under: files),
                ExposeCommand.description.grouped(under: files),
                StatusCommand.description.grouped(under: people),
                DiscoverCommand.description.grouped(under: people),
                MapCommand.description.grouped(under: people),
                ChatCommand.description.grouped(under: people),
                GuestsCommand.description.grouped(under: people),
                PairCommand.description.grouped(under: people),
                PeersCommand.description.grouped(under: people),
                IdentityCommand.description.grouped(under: people),
                DoctorCommand.description.grouped(under: diagnosis),
                PingCommand.description.grouped(under: diagnosis),
                BenchCommand.description.grouped(under: diagnosis),
                HostCommand.description.grouped(under: diagnosis),
                TraceCommand.description.grouped(under: diagnosis),
                ErrorsCommand.description.grouped(under: diagnosis),
                TransportsCommand.description.grouped(under: advanced),
                InjectCommand.description.grouped(under: advanced),
                ConformanceCommand.description.grouped(under: advanced),
                PrintCommand.completion.grouped(under: advanced),
                PrintCommand.manual.grouped(under: advanced),
                CompleteCommand.description,
            ]),
        version: NighVersion.text,
        sections: [
            Section(
                "Exit status",
                "0 on success, 1 if something failed or no peer replied, 2 if the command line is wrong, 3 if none of the "
                    + "requested transports works here or the system has too few descriptors or threads for any command, 4 if "
                    + "a given threshold is missed.", isDetail: true
            ),
            Section(
                "Output",
                "Results go to the standard output. Everything else goes to the standard error; lines that change in place "
                    + "appear only at a terminal. With --json the results are one JSON object, with --json-lines one object "
                    + "per line; docs/reference/schemas has the schemas.", isDetail: true
            ),
            Section(
                "Durations and sizes",
                "A duration is a number with ms, s, min, h or d; without a unit it is in seconds. A size is a number of bytes, "
                    + "or a number with kB, KiB, MB and so on.", isDetail: true
            ),
            Section(
                "Settings",
                "The file nigh/settings in $XDG_CONFIG_HOME (or ~/.config) has defaults for options, a line each: option = "
                    + "value. Lines behind [command] are for that command. A flag is yes or no. The command line overrides "
                    + "them, and NIGH_SETTINGS names another file, or none if it is empty.", isDetail: true
            ),
            Section(
                "Environment",
                "NO_COLOR, if it is not empty, turns colours off. XDG_DATA_HOME is the folder under which your identity, the "
                    + "peers you know, your unfinished sends and your plugins are kept. NIGH_PLUGIN_PATH lists the folders to "
                    + "search for plugins instead of the default ones.", isDetail: true
            ),
        ], helpTopics: .lines(of: CompleteCommand.line(for: .guides)),
        footer:
            "Run `nigh help COMMAND` for one command, `nigh help options` for the options of many commands, and `nigh help "
            + "guides` for the guides, which `nigh help --open` opens in a browser.")

    private static let files = "Files and ports"
    private static let people = "People"
    private static let diagnosis = "Diagnosis"
    private static let advanced = "Advanced"

    /// Reports that the system has too few descriptors or threads for any command, in the output form that was asked
    /// for. Returns the exit status.
    static func reportShortage(_ shortage: NighError, _ command: any Subcommand) -> Int32 {
        Results(of: command.commandName, command.output, kinds: command.kinds, onFailure: {}).fail(shortage)
        return ExitStatus.unavailable.rawValue
    }

    /// Returns the command that the arguments ask for. If they ask for help or contain a mistake, prints that and ends
    /// the program.
    static func parse(_ arguments: [String]) -> any Subcommand {
        var defaults: [OptionDefault] = []
        do {
            defaults = try SettingsFile.ofThisUser?.read() ?? []
        } catch {
            LineOutput.printError("\(error)", by: name)
            exit(UsageError.status)
        }
        return table.parseOrExit(
            current(arguments), defaults: defaults, as: name, width: TerminalWidth.forHelp)
    }

    /// Returns the arguments as this version spells them, if they are those of an earlier one.
    static func current(_ arguments: [String]) -> [String] {
        guard arguments.first == "peers", arguments.prefix(while: { $0 != "--" }).contains("--map") else {
            return arguments
        }
        return ["map"] + arguments.dropFirst().filter { $0 != "--map" }
    }

    static func run(_ command: any Subcommand) async -> Int32 {
        let stopRequest = StopRequest()
        let results = Results(
            of: command.commandName, command.output, kinds: command.kinds,
            onFailure: { stopRequest.request() })
        do {
            return try await command.run(results, stopRequest).rawValue
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
