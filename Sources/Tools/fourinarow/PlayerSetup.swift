import Arguments
import FourInARow
import Nigh
import NighCore
import NighMemory
import NighRecord
import ProgramLife
import SessionArguments

/// Makes the lobby that a command line asks for.
struct PlayerSetup {
    /// A lobby, ready to start.
    struct Ready {
        let lobby: Lobby
        let loop: UVEventLoop
        /// Writes down what passes, where that was asked for.
        let recorder: LinkRecorder?
        /// To be called once the session has closed: closes the record, where one was asked for. Tells what is wrong with it, and which
        /// transports have broken their contract, where that was watched.
        func finish() {
            for error in transports.breaches + [recorder?.finish()].compactMap(\.self) {
                LineOutput.complain("\(error)", by: "fourinarow")
            }
        }

        /// What to say about who one is, if anything.
        var remark: String?
        /// What carries the player's games beyond this program.
        let transports: [any Transport]
        var schemes: [String] { transports.map(\.scheme) }
        /// Transports that were taken because nobody named any: that one of them is not there is no news.
        let optionalSchemes: Set<String>
    }

    let player: Errand.Player

    /// Everything that belongs to one player, on a loop of its own. `besides` comes in addition to the transports that were asked for, where
    /// none of these has its scheme. `keepsIdentity` says whether this player is somebody at every start.
    func make(
        named name: DisplayName, keepsIdentity: Bool, besides: [any Transport] = []
    ) throws -> Ready {
        let transports = try player.plugins.makeAll(player.transports)
        let schemes = Set(transports.map(\.scheme))
        let all = transports + besides.filter { !schemes.contains($0.scheme) }
        var remark: String?
        let (identity, trust) = try chosenIdentity(keepsIdentity, &remark)
        let loop = try UVEventLoop.make()
        let recorder = try player.record?.begin()
        let lobby = Lobby(
            name: player.name ?? name, identity: identity, trust: trust, transports: all, loop: loop
        ) { $0.observer = recorder }
        return Ready(
            lobby: lobby, loop: loop, recorder: recorder, remark: remark, transports: transports,
            optionalSchemes: player.transports == nil ? schemes : [])
    }

    private func chosenIdentity(_ keepsIdentity: Bool, _ remark: inout String?) throws -> (
        Identity, TrustStore
    ) {
        switch player.identity {
        case .file(let file): return (try file.load(), .ephemeral())
        case nil where keepsIdentity:
            let file = try IdentityFile()
            let identity = try file.load()
            guard IdentityClaim.take(file.path) else {
                remark = "somebody plays as you on this device already, so here you are somebody new"
                return (.ephemeral(), try TrustStore.standard())
            }
            return (identity, try TrustStore.standard())
        case .ephemeral, nil: return (.ephemeral(), .ephemeral())
        }
    }
}
