import FourInARow
import NighCore

/// The machine at a table: thinks when it is its turn, and plays. It knows the lobby, as a person's screen does.
///
/// `@unchecked Sendable`: confined to the lobby's loop, but for the bot, of which the loop lets go while it thinks.
final class MachinePlayer: @unchecked Sendable {
    /// How it plays.
    struct Habits: Sendable {
        var level: Int
        var seed: UInt64
        /// After how many games it has had enough; nil for never.
        var games: Int?
        /// How long it waits before a move.
        var pause: Duration
    }

    /// What whoever has it play is told. All of it on the loop.
    struct Listener: Sendable {
        /// Something has happened.
        var told: @Sendable (LobbyView, LobbyNews) -> Void = { _, _ in }
        /// It has had enough: with true after all its games, with false because there is nobody to play with any more.
        var hadEnough: @Sendable (Bool) -> Void = { _ in }
    }

    private let habits: Habits
    private let lobby: Lobby
    private let loop: any EventLoop
    private let listener: Listener
    /// Nil while it thinks.
    private var bot: Bot?
    private var view: LobbyView?
    private var seeker: TableSeeker?
    private var isWaiting = false
    private var gamesPlayed = 0
    private var isClosed = false

    var id: PeerID { lobby.session.id }

    init(_ habits: Habits, lobby: Lobby, listener: Listener = Listener()) {
        self.habits = habits
        self.lobby = lobby
        self.listener = listener
        loop = lobby.session.loop
        bot = Bot(level: habits.level, seed: habits.seed)
    }

    /// Opens a table and plays against whoever sits down. To be called on the loop, once.
    func host() {
        lobby.start { [weak self] in self?.took($0, $1) }
        lobby.host(acceptsAll: true)
    }

    /// Plays at somebody else's table. To be called on the loop, once.
    func join(_ target: Errand.Target?) {
        seeker = TableSeeker(target, .seat)
        lobby.start { [weak self] in self?.took($0, $1) }
    }

    func close() async {
        loop.execute { self.isClosed = true }
        await lobby.close()
    }

    private func took(_ view: LobbyView, _ news: LobbyNews?) {
        guard !isClosed else { return }
        self.view = view
        if let news {
            listener.told(view, news)
            react(to: news)
        }
        switch seeker?.look(at: view) {
        case .join(let host): lobby.join(host, as: .seat)
        case .joinAddress(let address): lobby.join(at: address, as: .seat)
        // Whichever of them: it plays with anybody.
        case .ambiguous(_, let hosts): if let host = hosts.first { lobby.join(host, as: .seat) }
        case nil: break
        }
        consider()
    }

    private func react(to news: LobbyNews) {
        switch news {
        case .table(.ended): gameEnded()
        case .couldNotJoin, .tableClosed, .hostMisbehaved:
            if habits.games != gamesPlayed { listener.hadEnough(false) }
        default: break
        }
    }

    private func gameEnded() {
        gamesPlayed += 1
        if let games = habits.games, gamesPlayed >= games { return listener.hadEnough(true) }
        // At its own table the machine leaves it to its guest to ask for another game.
        guard case .visiting = view?.place else { return }
        loop.schedule(at: loop.now + Moment.Span(habits.pause)) { [weak self] in
            self?.lobby.act(.rematch)
        }
    }

    // MARK: Moves

    /// The position it is to move in now; nil where it is not its turn.
    private var question: (game: Game, disc: Disc)? {
        guard let sitting = view?.place.sitting, let disc = sitting.ownDisc, let game = sitting.table.game,
            game.turn == disc, sitting.pending == nil
        else { return nil }
        return (game, disc)
    }

    private func consider() {
        guard !isWaiting, bot != nil, question != nil else { return }
        isWaiting = true
        loop.schedule(at: loop.now + Moment.Span(habits.pause)) { [weak self] in
            self?.isWaiting = false
            self?.think()
        }
    }

    private func think() {
        guard !isClosed, let question, var bot else { return }
        self.bot = nil
        Task.detached { [self] in
            let column = bot.choose(on: question.game.board, as: question.disc)
            let thinker = bot
            loop.execute {
                self.bot = thinker
                self.play(column, in: question.game)
            }
        }
    }

    /// Plays it where the game is still the one that was thought about.
    private func play(_ column: Column, in game: Game) {
        guard !isClosed else { return }
        if question?.game == game { lobby.act(.move(column)) } else { consider() }
    }
}
