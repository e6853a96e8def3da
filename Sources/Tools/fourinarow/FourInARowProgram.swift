import Arguments
import FourInARow
import Glibc
import NighLoop
import NighCore
import NighMemory
import ProgramLife
import Terminal

/// The `fourinarow` command.
enum FourInARowProgram {
    private static let name = "fourinarow"

    /// Reports that the system has too few resources for the program, and returns the exit status.
    static func refuse(_ shortage: NighError) -> Int32 {
        LineOutput.complain("\(shortage)", by: name)
        return ProgramNeeds.status
    }

    static func run(_ arguments: [String]) async -> Int32 {
        let end = ProgramEnd()
        do throws(any Error) {
            switch Errand.program.parseOrExit(arguments, as: name, width: TerminalWidth.forHelp) {
            case .completion(let shell):
                LineOutput.write(Errand.program.completion(for: shell), to: STDOUT_FILENO)
                return 0
            case .manual:
                LineOutput.write(
                    Errand.program.manual(section: 6, date: "2026-11-21"), to: STDOUT_FILENO)
                return 0
            case .bot(let machine, let player):
                let output = LineOutput(whenBroken: { end.come(0) })
                Interrupts.onFirst { end.come(0) }
                return try await pointing(to: "\(name) bot --help") {
                    try await MachineErrand(machine: machine, player: player, output: output, end: end)
                        .run()
                }
            case .play(let beginning, let player, let looks):
                return try await pointing(to: "\(name) --help") {
                    try await play(beginning, player, looks, end)
                }
            }
        } catch let misuse as Misuse {
            LineOutput.complain("\(misuse)", by: name)
            return Misuse.status
        } catch {
            LineOutput.complain("\(error)", by: name)
            return 1
        }
    }

    /// Runs `body`, and adds where to read more to a misuse that it throws, as the parser does.
    private static func pointing(to help: String, _ body: () async throws -> Int32) async throws -> Int32 {
        do {
            return try await body()
        } catch let misuse as Misuse {
            throw misuse.pointing(to: help)
        }
    }

    private static func play(
        _ beginning: Errand.Beginning, _ player: Errand.Player, _ looks: Errand.Looks, _ end: ProgramEnd
    ) async throws -> Int32 {
        if player.transports == "memory" {
            throw Misuse(
                "memory reaches nobody outside this program: name another transport"
            )
        }
        let hub = MemoryHub()
        let ready = try PlayerSetup(player: player).make(
            named: try .ofThisUser(), keepsIdentity: true, besides: [MemoryTransport(hub: hub)])
        let front: any Front
        let traits = TerminalTraits.ofThisProcess
        if looks.isPlain || traits.isDumb || !isTerminal(STDIN_FILENO) || !isTerminal(STDOUT_FILENO) {
            front = try PlainFront(LineOutput(whenBroken: { end.come(0) }))
        } else {
            front = ScreenFront(
                ScreenStyle(isUnicode: traits.isUnicode && !looks.isASCII, animates: looks.animates),
                over: ready.schemes, on: ready.loop, gone: { end.come(0) })
        }
        let game = PersonalGame(ready, front: front, hub: hub, end: end)
        Interrupts.onFirst { end.come(0) }
        try game.start(beginning)
        let status = await end.status()
        await game.close()
        return status
    }
}
