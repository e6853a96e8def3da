import FourInARow
import NighLoop
import NighCore
import NighMemory
import ProgramLife

/// One person's game: the lobby, what the person sees of it, and the bot if the person plays against it.
///
/// `@unchecked Sendable`: confined to the lobby's loop from `start` on.
final class PersonalGame: @unchecked Sendable {
    private let ready: PlayerSetup.Ready
    private let front: any Front
    private let hub: MemoryHub
    private let end: ProgramEnd
    private var seeker: TableSeeker?
    private var machine: MachinePlayer?
    private var wantsMachine: PeerID?

    private var lobby: Lobby { ready.lobby }
    private var loop: UVEventLoop { ready.loop }

    /// - Parameter hub: the memory network on which the bot is reached. One of the lobby's transports is on it.
    init(_ ready: PlayerSetup.Ready, front: any Front, hub: MemoryHub, end: ProgramEnd) {
        self.ready = ready
        self.front = front
        self.hub = hub
        self.end = end
    }

    /// Shows the game, and does what the command line asks for first. Throws if there is nothing to show it on.
    func start(_ beginning: Errand.Beginning) throws {
        try front.start(LobbyView(of: lobby)) { [weak self] wish in
            guard let self else { return }
            loop.execute { self.perform(wish) }
        }
        loop.execute { [self] in
            if let remark = ready.remark { front.tell(remark) }
            if case .join(let target, let wish) = beginning { seek(target, wish) }
            lobby.start { [weak self] in self?.lobbyChanged($0, $1) }
            if beginning == .host { lobby.host() }
        }
    }

    /// Leaves the table and closes everything, and returns when that is done.
    func close() async {
        front.stop()
        await machine?.close()
        await lobby.close()
        loop.shutdown()
        ready.finish()
    }

    // MARK: Events

    private func lobbyChanged(_ view: LobbyView, _ news: LobbyNews?) {
        front.show(view, isWorthASentence(news, view) ? news : nil)
        guard view.place == .lobby else { return }
        if let wanted = wantsMachine {
            guard view.tables.contains(where: { $0.id == wanted }) else { return }
            wantsMachine = nil
            lobby.join(wanted, as: .seat)
        } else if let machine {
            // The person has left the bot's table.
            dismiss(machine)
        }
        seek(view)
    }

    /// Begins to look for a table. Call this before the lobby starts: the lobby's first view may be the only one,
    /// because nothing has to be seen before an address is called.
    private func seek(_ target: Errand.Target?, _ wish: TableWish) {
        let seeker = TableSeeker(target, wish)
        self.seeker = seeker
        if let description = seeker.description { front.tell("looking for \(description)") }
    }

    private func seek(_ view: LobbyView) {
        guard let finding = seeker?.look(at: view) else { return }
        switch finding {
        case .join(let host): lobby.join(host, as: seeker?.wish ?? .seat)
        case .joinAddress(let address): lobby.join(at: address, as: seeker?.wish ?? .seat)
        case .ambiguous(let name, let hosts):
            let ids = hosts.map(\.short).joined(separator: ", ")
            front.tell("several are called \(name): choose one, or say which by its id: \(ids)")
        }
    }

    /// Returns whether there is something to say about `news`. If nobody asked for a transport by name, the view shows
    /// that it does not work, but that is no news.
    private func isWorthASentence(_ news: LobbyNews?, _ view: LobbyView) -> Bool {
        switch news {
        case .transport(let scheme, .down): !ready.optionalSchemes.contains(scheme)
        case .trouble(let error):
            !(error.transport.map { ready.optionalSchemes.contains($0) && view.brokenTransports[$0] != nil }
                ?? false)
        default: true
        }
    }

    // MARK: Requests of the person

    private func perform(_ wish: Wish) {
        switch wish {
        case .host:
            seeker?.stop()
            lobby.host()
        case .join(let host, let wish):
            seeker?.stop()
            lobby.join(host, as: wish)
        case .playBot(let level):
            seeker?.stop()
            playBot(level)
        case .answer(let asker, let accept):
            lobby.answer(asker, accept: accept, words: accept ? "" : "not now")
        case .act(let action): lobby.act(action) { [weak self] in self?.front.refused($0) }
        case .leave:
            seeker?.stop()
            wantsMachine = nil
            lobby.leave()
        case .quit: end.come(0)
        // The front does this itself, because it concerns the terminal.
        case .suspend: break
        }
    }

    /// Lets the bot open a table in this program, and joins that table when it is seen.
    private func playBot(_ level: Int) {
        if let machine { dismiss(machine) }
        let machine = MachinePlayer(
            .init(level: level, seed: .random(in: .min ... .max), games: nil, pause: .milliseconds(500)),
            lobby: Lobby(
                name: DisplayName(fitting: "Machine (level \(level))"), identity: .ephemeral(),
                transports: [MemoryTransport(hub: hub)], loop: loop))
        self.machine = machine
        wantsMachine = machine.id
        lobby.leave()
        machine.host()
    }

    private func dismiss(_ machine: MachinePlayer) {
        if self.machine === machine { self.machine = nil }
        Task { await machine.close() }
    }
}
