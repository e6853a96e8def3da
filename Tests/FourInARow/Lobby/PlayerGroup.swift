import NighCore
import NighMemory
import NighTestKit

@testable import FourInARow

/// Players that can find each other, on one memory hub and in virtual time.
final class PlayerGroup {
    /// A player, and everything that the player's screen was told.
    ///
    /// `@unchecked Sendable`: everything runs on the one thread that runs the virtual loop.
    final class Player: @unchecked Sendable {
        let lobby: Lobby
        let air: FaultyTransport
        fileprivate(set) var view: LobbyView
        fileprivate(set) var news: [LobbyNews] = []
        /// The boards, in the order in which they were shown.
        fileprivate(set) var boards: [Board] = []
        /// The reasons for which the player's actions were refused.
        private(set) var refusals: [Breach] = []
        /// Whether the player's program was killed.
        private(set) var isKilled = false

        fileprivate init(
            _ name: String, identity: Identity, trust: TrustStore, hub: MemoryHub,
            others: [any Transport], security: SessionSecurity, loop: VirtualEventLoop
        ) {
            air = FaultyTransport(MemoryTransport(hub: hub))
            lobby = Lobby(
                name: DisplayName(fitting: name), identity: identity, trust: trust,
                transports: [air] + others, loop: loop
            ) { $0.security = security }
            view = LobbyView(name: name, id: lobby.session.id)
        }

        func act(_ action: Action) { lobby.act(action) { self.refusals.append($0) } }

        /// Cuts the player's links, and refuses new ones.
        func cut() {
            air.control.cut()
            air.control.block(dials: .refuse)
        }

        /// Ends the player's program without a goodbye, as `kill -9` does.
        func kill() {
            isKilled = true
            lobby.session.crash()
        }

        var id: PeerID { lobby.session.id }
        var tableView: TableView? { view.place.tableView }
        var table: Table? { tableView?.table }
        var board: Board? { table?.game?.board }
        var standing: Standing { tableView.map(Standing.init) ?? .unknown }

        fileprivate func update(_ view: LobbyView, _ news: LobbyNews?) {
            guard !isKilled else { return }
            self.view = view
            if let news { self.news.append(news) }
            if let board, board != boards.last { boards.append(board) }
        }
    }

    /// How a game stands, as one of the two players sees it.
    enum Standing {
        /// There is no game, it ended without a winner, or this player only watches.
        case unknown
        case myTurn, yourTurn, iWin, youWin

        fileprivate init(_ tableView: TableView) {
            guard let game = tableView.table.game, let disc = tableView.ownDisc else {
                self = .unknown
                return
            }
            if let winner = game.winner {
                self = winner == disc ? .iWin : .youWin
            } else if let turn = game.turn {
                self = turn == disc ? .myTurn : .yourTurn
            } else {
                self = .unknown
            }
        }
    }

    let loop = VirtualEventLoop()
    let hub = MemoryHub()

    func player(
        _ name: String, identity: Identity = .ephemeral(), trust: TrustStore = .ephemeral(),
        others: [any Transport] = [], security: SessionSecurity = .encrypted, hub: MemoryHub? = nil
    ) -> Player {
        let player = Player(
            name, identity: identity, trust: trust, hub: hub ?? self.hub, others: others, security: security,
            loop: loop)
        player.lobby.start { player.update($0, $1) }
        return player
    }

    /// Lets time pass until `condition` holds; returns whether it does.
    func wait(_ seconds: Int = 20, until condition: () -> Bool) throws -> Bool {
        try loop.run(until: condition, within: .seconds(seconds))
    }

    func pass(_ duration: Duration) throws { try loop.run(for: duration) }

    /// Makes `host` open a table and `guest` take the seat; returns whether both succeed.
    func seated(_ host: Player, _ guest: Player) throws -> Bool {
        host.lobby.host(acceptsAll: true)
        guard try wait(until: { guest.view.tables.contains { $0.id == host.id } }) else { return false }
        guest.lobby.join(host.id, as: .seat)
        return try wait(until: { guest.table?.game != nil && host.table?.guest != nil })
    }

    /// Plays these columns, each by the player whose turn it is; returns false if that player's turn does not come.
    func play(_ letters: String, _ host: Player, _ guest: Player) throws -> Bool {
        for letter in letters {
            guard let column = Column.allCases.first(where: { $0.description == String(letter) }),
                try wait(until: { host.standing == .myTurn || guest.standing == .myTurn })
            else { return false }
            let count = host.board?.count ?? 0
            (host.standing == .myTurn ? host : guest).lobby.act(.move(column))
            guard try wait(until: { host.board?.count == count + 1 && guest.board == host.board }) else {
                return false
            }
        }
        return true
    }
}
