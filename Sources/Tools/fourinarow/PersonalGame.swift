import FourInARow
import NighLoop
import NighCore
import NighMemory
import ProgramSupport

/// One person's game: the lobby, its interface, and the bot if the person plays against it.
///
/// `@unchecked Sendable`: confined to the lobby's loop from `start` on.
final class PersonalGame: @unchecked Sendable {
    private let ready: PlayerSetup.Ready
    private let interface: any UserInterface
    private let hub: MemoryHub
    private let exit: ProgramExit
    private var search: TableSearch?
    private var bot: BotPlayer?
    private var awaitedBot: PeerID?
    /// The person's requests before the lobby starts; nil from then on.
    private var earlyRequests: [UserRequest]? = []

    private var lobby: Lobby { ready.lobby }
    private var loop: UVEventLoop { ready.loop }

    /// - Parameter hub: the memory network on which the bot is reached. One of the lobby's transports is on it.
    init(_ ready: PlayerSetup.Ready, interface: any UserInterface, hub: MemoryHub, exit: ProgramExit) {
        self.ready = ready
        self.interface = interface
        self.hub = hub
        self.exit = exit
    }

    /// Shows the game, and carries out the command line. Throws if there is nothing to show it on.
    func start(_ start: GameCommand.Start) throws {
        try interface.start(LobbyView(of: lobby)) { [weak self] request in
            guard let self else { return }
            loop.execute { self.perform(request) }
        }
        ready.codes.handler = { [interface] in interface.showCode($0) }
        loop.execute { [self] in
            if case .join(let target, let role) = start { startSearch(target, role) }
            lobby.start { [weak self] in self?.lobbyChanged($0, $1) }
            if start == .host { lobby.host() }
            let requests = earlyRequests ?? []
            earlyRequests = nil
            for request in requests { perform(request) }
        }
    }

    /// Leaves the table and closes everything, and returns when that is done.
    func close() async {
        interface.stop()
        await bot?.close()
        await lobby.close()
        loop.shutdown()
        ready.finish()
    }

    // MARK: Events

    private func lobbyChanged(_ view: LobbyView, _ news: LobbyNews?) {
        interface.show(view, isWorthReporting(news, view) ? news.map(ready.completed) : nil)
        guard view.place == .lobby else { return }
        if let wanted = awaitedBot {
            guard view.tables.contains(where: { $0.id == wanted }) else { return }
            awaitedBot = nil
            lobby.join(wanted, as: .seat)
        } else if let bot {
            // The person has left the bot's table.
            dismiss(bot)
        }
        continueSearch(view)
    }

    /// Begins to look for a table. Call this before the lobby starts: the lobby's first view may be the only one,
    /// because nothing has to be seen before an address is called.
    private func startSearch(_ target: GameCommand.Target?, _ role: TableRole) {
        let search = TableSearch(target, role)
        self.search = search
        if let description = search.description { interface.showMessage("looking for \(description)") }
    }

    private func continueSearch(_ view: LobbyView) {
        guard let step = search?.next(for: view) else { return }
        switch step {
        case .join(let host): lobby.join(host, as: search?.role ?? .seat)
        case .joinAddress(let address): lobby.join(at: address, as: search?.role ?? .seat)
        case .ambiguous(let name, let hosts):
            let ids = hosts.map(\.short).joined(separator: ", ")
            interface.showMessage(
                "several hosts are called \(name): choose one, or name it by its ID: \(ids)")
        }
    }

    /// Returns whether to report `news`. If nobody asked for a transport by name, the view shows that it does not work,
    /// but that is no news.
    private func isWorthReporting(_ news: LobbyNews?, _ view: LobbyView) -> Bool {
        switch news {
        case .transport(let scheme, .down): !ready.optionalSchemes.contains(scheme)
        case .otherFailure(let error):
            !(error.transport.map { ready.optionalSchemes.contains($0) && view.brokenTransports[$0] != nil }
                ?? false)
        default: true
        }
    }

    // MARK: Requests of the person

    private func perform(_ request: UserRequest) {
        guard earlyRequests == nil else {
            earlyRequests?.append(request)
            return
        }
        switch request {
        case .host:
            search?.stop()
            lobby.host()
        case .join(let host, let role):
            search?.stop()
            lobby.join(host, as: role)
        case .playBot(let level):
            search?.stop()
            playBot(level)
        case .answer(let peer, let accept):
            lobby.answer(peer, accept: accept, reason: accept ? "" : "not now")
        case .answerOffer(let takesSeat): lobby.answerOffer(takesSeat: takesSeat)
        case .act(let action): lobby.act(action) { [weak self] in self?.interface.showRefusal($0) }
        case .leave:
            search?.stop()
            awaitedBot = nil
            lobby.leave()
        case .newCode: ready.codes.reception?.renew()
        case .quit: exit.request(0)
        // The interface does this itself, because it concerns the terminal.
        case .suspend: break
        }
    }

    /// Lets the bot open a table in this program, and joins that table when it is seen.
    private func playBot(_ level: Int) {
        if let bot { dismiss(bot) }
        let bot = BotPlayer(
            .init(level: level, seed: .random(in: .min ... .max), games: nil, pause: .milliseconds(500)),
            lobby: Lobby(
                name: DisplayName(fitting: "Machine (level \(level))"), identity: .ephemeral(),
                transports: [MemoryTransport(hub: hub)], loop: loop))
        self.bot = bot
        awaitedBot = bot.id
        lobby.leave()
        bot.host()
    }

    private func dismiss(_ bot: BotPlayer) {
        if self.bot === bot { self.bot = nil }
        Task { await bot.close() }
    }
}
