import Arguments
import FourInARow
import Glibc
import NighLoop
import NighCore
import NighMemory
import NighSystem
import ProgramSupport
import Terminal

/// The `fourinarow` command.
enum FourInARowProgram {
    private static let name = "fourinarow"

    /// Reports that the system has too few resources for the program, and returns the exit status.
    static func reportShortage(_ shortage: NighError) -> Int32 {
        LineOutput.printError("\(shortage)", by: name)
        return SystemRequirements.exitStatus
    }

    /// Returns the command that the arguments ask for. If they ask for help or contain a mistake, prints that and ends
    /// the program.
    static func parse(_ arguments: [String]) -> GameCommand {
        GameCommand.program.parseOrExit(arguments, as: name, width: TerminalWidth.forHelp)
    }

    static func run(_ command: GameCommand) async -> Int32 {
        let exit = ProgramExit()
        do throws(any Error) {
            switch command {
            case .completion(let shell):
                LineOutput.write(GameCommand.program.completion(for: shell), to: STDOUT_FILENO)
                return 0
            case .manual(let isMarkdown):
                let program = GameCommand.program
                LineOutput.write(
                    isMarkdown ? program.markdown : program.manual(section: 6, date: "2026-11-21"),
                    to: STDOUT_FILENO)
                return 0
            case .bot(let options, let player):
                let output = LineOutput(onFailure: { exit.request(0) })
                TerminationSignals.onFirst { exit.request(0) }
                return try await pointing(to: "\(name) bot --help") {
                    try await BotCommand(options: options, player: player, output: output, exit: exit)
                        .run()
                }
            case .play(let start, let player, let display):
                return try await pointing(to: "\(name) --help") {
                    try await play(start, player, display, exit)
                }
            }
        } catch let usageError as UsageError {
            LineOutput.printError("\(usageError)", by: name)
            return UsageError.status
        } catch {
            LineOutput.printError("\(error)", by: name)
            return 1
        }
    }

    /// Runs `body`, and adds where to read more to a usage error that it throws, as the parser does.
    private static func pointing(to help: String, _ body: () async throws -> Int32) async throws -> Int32 {
        do {
            return try await body()
        } catch let usageError as UsageError {
            throw usageError.addingReference(to: help)
        }
    }

    private static func play(
        _ start: GameCommand.Start, _ player: GameCommand.Player, _ display: GameCommand.DisplayOptions,
        _ exit: ProgramExit
    ) async throws -> Int32 {
        if player.namesMemory {
            throw UsageError("memory reaches nobody outside this program: name only other transports")
        }
        let traits = TerminalTraits.ofThisProcess
        let isPlain =
            display.isPlain || traits.isDumb || !isTerminal(STDIN_FILENO) || !isTerminal(STDOUT_FILENO)
        let hub = MemoryHub()
        let ready = try PlayerSetup(player: player).make(
            named: try player.name ?? .ofThisUser(), keepsIdentity: true,
            besides: [MemoryTransport(hub: hub)],
            printsCodes: isPlain)
        let interface: any UserInterface
        if isPlain {
            let codeStyle = PrintedCodeStyle(traits, isTerminal: isTerminal(STDOUT_FILENO))
            interface = try PlainInterface(
                LineOutput(onFailure: { exit.request(0) }), codeStyle: display.isASCII ? nil : codeStyle)
        } else {
            interface = ScreenInterface(
                ScreenStyle(isUnicode: traits.isUnicode && !display.isASCII, animates: display.animates),
                over: ready.schemes, on: ready.loop, onTerminalGone: { exit.request(0) })
        }
        let game = PersonalGame(ready, interface: interface, hub: hub, exit: exit)
        TerminationSignals.onFirst { exit.request(0) }
        try game.start(start)
        let status = await exit.status()
        await game.close()
        return status
    }
}
