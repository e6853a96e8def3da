import FourInARow
import NighCore

/// The bot at a table: chooses a move when it is its turn, and plays it. It uses the lobby as a person's screen does.
///
/// `@unchecked Sendable`: confined to the lobby's loop, except for the bot, which is off the loop while it thinks.
final class BotPlayer: @unchecked Sendable {
    /// The settings of the bot's play.
    struct Settings: Sendable {
        var level: Int
        var seed: UInt64
        /// The number of games after which the bot stops; nil for no limit.
        var games: Int?
        /// The time that the bot waits before a move.
        var pause: Duration
    }

    /// The callbacks to the owner of the bot, all called on the loop.
    struct Callbacks: Sendable {
        /// Something has happened.
        var onNews: @Sendable (LobbyView, LobbyNews) -> Void = { _, _ in }
        /// The view has changed. Called after `onNews`.
        var onChange: @Sendable (LobbyView) -> Void = { _ in }
        /// The bot has stopped: with true after all its games, with false because there is nobody left to play with.
        var onFinish: @Sendable (Bool) -> Void = { _ in }
    }

    private let settings: Settings
    private let lobby: Lobby
    private let loop: any EventLoop
    private let callbacks: Callbacks
    /// Nil while the bot thinks.
    private var bot: Bot?
    private var view: LobbyView?
    private var search: TableSearch?
    private var role = TableRole.seat
    private var isWaiting = false
    private var gamesPlayed = 0
    private var isClosed = false

    var id: PeerID { lobby.session.id }

    init(_ settings: Settings, lobby: Lobby, callbacks: Callbacks = Callbacks()) {
        self.settings = settings
        self.lobby = lobby
        self.callbacks = callbacks
        loop = lobby.loop
        bot = Bot(level: settings.level, seed: settings.seed)
    }

    /// Opens a table and plays against each peer that sits down. Call this once, on the loop.
    func host() {
        lobby.start { [weak self] in self?.lobbyChanged($0, $1) }
        lobby.host(acceptsAll: true)
    }

    /// Plays at somebody else's table, or watches there. Call this once, on the loop.
    func join(_ target: GameCommand.Target?, as role: TableRole) {
        self.role = role
        search = TableSearch(target, role)
        lobby.start { [weak self] in self?.lobbyChanged($0, $1) }
    }

    func close() async {
        loop.execute { self.isClosed = true }
        await lobby.close()
    }

    private func lobbyChanged(_ view: LobbyView, _ news: LobbyNews?) {
        guard !isClosed else { return }
        self.view = view
        if let news {
            callbacks.onNews(view, news)
            react(to: news)
        }
        callbacks.onChange(view)
        switch search?.next(for: view) {
        case .join(let host): lobby.join(host, as: role)
        case .joinAddress(let address): lobby.join(at: address, as: role)
        // Any of them will do: the bot plays with anybody.
        case .ambiguous(_, let hosts): if let host = hosts.first { lobby.join(host, as: role) }
        case nil: break
        }
        scheduleMove()
    }

    private func react(to news: LobbyNews) {
        switch news {
        case .table(.ended): if view?.place.tableView?.ownDisc != nil { gameEnded() }
        case .couldNotJoin, .tableClosed, .hostMisbehaved:
            if settings.games != gamesPlayed { callbacks.onFinish(false) }
        case .table(.seatOffered): lobby.answerOffer(takesSeat: true)
        // Only at a table that the bot has taken over: at its own, nobody is asked about.
        case .seatRequested(let request): lobby.answer(request.id, accept: true)
        default: break
        }
    }

    private func gameEnded() {
        gamesPlayed += 1
        if let games = settings.games, gamesPlayed >= games { return callbacks.onFinish(true) }
        // At its own table, the bot leaves it to its guest to ask for another game.
        guard case .visiting = view?.place else { return }
        loop.schedule(at: loop.now + Moment.Span(settings.pause)) { [weak self] in
            self?.lobby.act(.rematch)
        }
    }

    // MARK: Moves

    /// The position in which the bot has to move now, or nil if it is not its turn.
    private var ownTurn: (game: Game, disc: Disc)? {
        guard let tableView = view?.place.tableView, let disc = tableView.ownDisc,
            let game = tableView.table.game,
            tableView.table.turn == disc, tableView.pending == nil
        else { return nil }
        return (game, disc)
    }

    private func scheduleMove() {
        guard !isWaiting, bot != nil, ownTurn != nil else { return }
        isWaiting = true
        loop.schedule(at: loop.now + Moment.Span(settings.pause)) { [weak self] in
            self?.isWaiting = false
            self?.think()
        }
    }

    private func think() {
        guard !isClosed, let ownTurn, var bot else { return }
        self.bot = nil
        Task.detached { [self] in
            let column = bot.choose(on: ownTurn.game.board, as: ownTurn.disc)
            let thinker = bot
            loop.execute {
                self.bot = thinker
                self.play(column, in: ownTurn.game)
            }
        }
    }

    /// Plays the move, if the game is still the one that the bot thought about.
    private func play(_ column: Column, in game: Game) {
        guard !isClosed else { return }
        if ownTurn?.game == game { lobby.act(.move(column)) } else { scheduleMove() }
    }
}
