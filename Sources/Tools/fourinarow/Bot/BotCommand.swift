import Arguments
import FourInARow
import Glibc
import NighLoop
import NighCore
import ProgramSupport
import Terminal

/// Runs the command `fourinarow bot`: lets the bot play, and prints the results.
struct BotCommand {
    let options: GameCommand.BotOptions
    let player: GameCommand.Player
    let output: LineOutput
    let exit: ProgramExit

    /// Plays until the games are over or the program has to end. Throws if it cannot begin.
    func run() async throws -> Int32 {
        guard options.opponentLevel == nil || options.table == nil else {
            throw UsageError(
                "--at and --against do not go together: with --against both players are in this program")
        }
        guard options.opponentLevel == nil || !options.watches else {
            throw UsageError(
                "--watch and --against do not go together: with --against both players are in this program")
        }
        guard !player.admitsGuests || options.table == nil && !options.watches else {
            throw UsageError("--web is for a table of the machine's own: leave out --at and --watch")
        }
        if options.opponentLevel == nil, player.namesMemory {
            throw UsageError(
                "memory reaches nobody outside this program: add --against, or name only other transports")
        }
        var seats = [try seat("Machine", options.level, options.seed, reports: true)]
        if let level = options.opponentLevel {
            // Another seed, because with the same one both bots would choose alike.
            seats.append(try seat("Opponent", level, options.seed &+ 1, reports: false))
        }
        for (index, seat) in seats.enumerated() {
            // By its ID, because another machine nearby may have the same name.
            let table = index == 0 ? options.table : .name(seats[0].player.id.description)
            let player = seat.player
            if index == 0, table != nil || options.watches,
                let wanted = TableSearch(table, options.watches ? .watch : .seat).description
            {
                output.line("looking for \(wanted)")
            }
            seat.loop.execute { [options] in
                if options.watches {
                    player.join(table, as: .watch)
                } else if let table {
                    player.join(table, as: .seat)
                } else {
                    player.host()
                }
            }
        }
        let status = await exit.status()
        for seat in seats.reversed() {
            await seat.player.close()
            seat.loop.shutdown()
            seat.ready.finish()
        }
        return status
    }

    private struct Seat {
        let player: BotPlayer
        let ready: PlayerSetup.Ready

        var loop: UVEventLoop { ready.loop }
    }

    private func seat(_ name: String, _ level: Int, _ seed: UInt64, reports: Bool) throws -> Seat {
        var player = player
        if !reports {
            player.name = nil
            player.admitsGuests = false
            player.record = nil
            // Two players with one key would be one peer, and a peer does not see itself.
            player.identity = nil
        }
        let ownName = player.name ?? DisplayName(fitting: name)
        let ready = try PlayerSetup(player: player).make(
            named: ownName, keepsIdentity: false, printsCodes: true)
        let report = GameReport(optionalSchemes: ready.optionalSchemes)
        if reports { output.line("\(ownName) plays at level \(level), with seed \(seed)") }
        let (output, exit) = (output, exit)
        let codes = BotCodes(output)
        ready.codes.handler = { if reports { codes.take($0) } }
        let callbacks = BotPlayer.Callbacks(
            onNews: { view, news in
                guard reports else { return }
                output.lines(report.lines(for: ready.completed(news), in: view))
            },
            onChange: { if reports { codes.show($0) } },
            onFinish: { hasPlayedAll in exit.request(hasPlayedAll ? 0 : 1) })
        return Seat(
            player: BotPlayer(
                .init(level: level, seed: seed, games: options.games, pause: options.pause),
                lobby: ready.lobby, callbacks: callbacks),
            ready: ready)
    }
}

/// Prints the codes for guests at the bot's table.
///
/// `@unchecked Sendable`: confined to the lobby's loop.
private final class BotCodes: @unchecked Sendable {
    private let output: LineOutput
    private let style = PrintedCodeStyle(.ofThisProcess, isTerminal: isTerminal(STDOUT_FILENO))
    private var announcement = CodeAnnouncement()
    private var view: LobbyView?

    init(_ output: LineOutput) { self.output = output }

    func take(_ code: GuestCode) {
        announcement.take(code)
        if let view { show(view) }
    }

    func show(_ view: LobbyView) {
        self.view = view
        output.writeSanitized(announcement.lines(for: view, style))
    }
}
