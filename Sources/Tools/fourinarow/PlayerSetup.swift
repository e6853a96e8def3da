import Arguments
import FourInARow
import Guests
import NighLoop
import NighCore
import NighMemory
import NighRecord
import NighSystem
import ProgramSupport
import SessionArguments

/// Creates the lobby that a command line asks for.
struct PlayerSetup {
    /// A lobby, ready to start.
    struct Ready {
        let lobby: Lobby
        let loop: UVEventLoop
        /// Records the links, if the command line asks for it.
        let recorder: LinkRecorder?
        /// Closes the record, if there is one. Prints the errors of the record, and the breaches of contract by checked
        /// transports. Call this once the session has closed.
        func finish() {
            for error in transports.breaches + [recorder?.finish()].compactMap(\.self) {
                LineOutput.printError("\(error)", by: "fourinarow")
            }
        }

        /// The transports that carry the player's games beyond this program.
        let transports: [any Transport]
        /// The schemes over which others are found.
        var schemes: [String] { transports.filter { !$0.hasGuests }.map(\.scheme) }
        /// Transports that were chosen because nobody named any. It is no news if one of them does not work.
        let optionalSchemes: Set<String>
        /// The codes for guests, if the player lets them in.
        var codes = GuestCodes()

        /// Returns the news with the actual time that the session waits for a person whose link broke. Some transports
        /// have a longer one.
        func completed(_ news: LobbyNews) -> LobbyNews {
            guard case .linkLost(let person, let usual) = news,
                let transport = transports.first(where: { $0.scheme == person.transport })
            else { return news }
            return .linkLost(person, waiting: transport.grace(usual: usual))
        }
    }

    let player: GameCommand.Player

    /// Creates everything that one player of this name needs, on a new loop.
    ///
    /// `besides` adds transports to the requested ones, if none of these has the same scheme. `keepsIdentity` says
    /// whether the player is the same peer at every start. `printsCodes` says that codes for guests are printed below
    /// each other: then the next one waits until the guest who has used one had time to sit down.
    func make(
        named name: DisplayName, keepsIdentity: Bool, besides: [any Transport] = [],
        printsCodes: Bool
    ) throws -> Ready {
        var transports = try player.plugins.makeAll(player.transports)
        let optional = player.transports == nil ? Set(transports.map(\.scheme)) : []
        if player.admitsGuests, !transports.contains(where: \.hasGuests) {
            transports += try player.plugins.makeAll(TransportForGuests.scheme)
        }
        let schemes = Set(transports.map(\.scheme))
        let all = transports + besides.filter { !schemes.contains($0.scheme) }
        let (identity, trust) = try chosenIdentity(keepsIdentity)
        let loop = try UVEventLoop.make()
        let recorder = try player.record?.begin()
        let codes = GuestCodes()
        let reception = GuestReception(.afterUse(printsCodes ? .seconds(30) : .zero)) { code, _ in
            codes.handler(GuestCode(code))
        }
        codes.reception = reception
        let lobby = Lobby(
            name: name, identity: identity.identity, trust: trust, transports: all, loop: loop
        ) {
            $0.layers = [identity] + (recorder.map { [$0] } ?? [])
            $0.admitGuests(over: all, with: reception)
        }
        return Ready(
            lobby: lobby, loop: loop, recorder: recorder, transports: transports,
            optionalSchemes: optional, codes: codes)
    }

    private func chosenIdentity(_ keepsIdentity: Bool) throws -> (IdentityUse, TrustStore) {
        switch player.identity {
        case .file(let file): (try .begin(file, for: Lobby.service), .ephemeral())
        case nil where keepsIdentity: (try .begin(IdentityFile(), for: Lobby.service), try .standard())
        case .ephemeral, nil: (.alone(.ephemeral()), .ephemeral())
        }
    }
}
