import Arguments
import FourInARow
import NighLoop
import NighCore
import ProgramLife

/// Runs the command `fourinarow bot`: lets the bot play, and prints the results.
struct MachineErrand {
    let machine: Errand.Machine
    let player: Errand.Player
    let output: LineOutput
    let end: ProgramEnd

    /// Plays until the games are over or the program has to end. Throws if it cannot begin.
    func run() async throws -> Int32 {
        guard machine.opponentLevel == nil || machine.table == nil else {
            throw Misuse(
                "--at and --against do not go together: with --against both players are in this program")
        }
        if machine.opponentLevel == nil, player.transports == "memory" {
            throw Misuse(
                "memory reaches nobody outside this program: add --against, or name another transport")
        }
        var seats = [try seat("Machine", machine.level, machine.seed, reports: true)]
        if let level = machine.opponentLevel {
            // Another seed, because with the same one both bots would choose alike.
            seats.append(try seat("Opponent", level, machine.seed &+ 1, reports: false))
        }
        for (index, seat) in seats.enumerated() {
            let (machine, table) = (seat.player, index == 0 ? machine.table : .name(seats[0].name))
            seat.loop.execute {
                if let table { machine.join(table) } else { machine.host() }
            }
        }
        let status = await end.status()
        for seat in seats.reversed() {
            await seat.player.close()
            seat.loop.shutdown()
            seat.ready.finish()
        }
        return status
    }

    private struct Seat {
        let player: MachinePlayer
        let ready: PlayerSetup.Ready
        let name: String

        var loop: UVEventLoop { ready.loop }
    }

    private func seat(_ name: String, _ level: Int, _ seed: UInt64, reports: Bool) throws -> Seat {
        var player = player
        if !reports {
            player.name = nil
            player.record = nil
        }
        let ready = try PlayerSetup(player: player).make(
            named: DisplayName(fitting: name), keepsIdentity: false)
        let ownName = (player.name ?? DisplayName(fitting: name)).description
        let report = GameReport(ownName: ownName, optionalSchemes: ready.optionalSchemes)
        if reports { output.line("\(ownName) plays at level \(level), with seed \(seed)") }
        let (output, end) = (output, end)
        let listener = MachinePlayer.Listener(
            told: { view, news in
                guard reports else { return }
                output.lines(report.lines(for: news, in: view))
            },
            hadEnough: { hasPlayedAll in end.come(hasPlayedAll ? 0 : 1) })
        return Seat(
            player: MachinePlayer(
                .init(level: level, seed: seed, games: machine.games, pause: machine.pause),
                lobby: ready.lobby, listener: listener),
            ready: ready, name: ownName)
    }
}
