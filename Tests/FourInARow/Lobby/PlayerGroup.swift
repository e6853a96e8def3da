import NighCore
import NighMemory
import NighTestKit
import Testing

@testable import FourInARow

/// Players that can find each other, on one simulated network.
final class PlayerGroup {
    /// A player, and everything that the player's screen was told.
    ///
    /// `@unchecked Sendable`: everything runs on the one thread that runs the virtual loop.
    final class Player: @unchecked Sendable {
        let lobby: Lobby
        /// The faults on the wire of all players.
        let air: FaultControl
        fileprivate(set) var view: LobbyView
        fileprivate(set) var news: [LobbyNews] = []
        /// The boards, in the order in which they were shown.
        fileprivate(set) var boards: [Board] = []
        /// The reasons for which the player's actions were refused.
        private(set) var refusals: [Breach] = []
        /// Whether the player's program was killed.
        private(set) var isKilled = false

        fileprivate init(
            _ name: String, identity: Identity, trust: TrustStore, host: SimulatedHost,
            others: [any Transport], security: SessionSecurity, loop: VirtualEventLoop
        ) {
            air = host.faults[0]
            lobby = Lobby(
                name: DisplayName(fitting: name), identity: identity, trust: trust,
                transports: host.transports + others, loop: loop
            ) { $0.security = security }
            view = LobbyView(name: name, id: lobby.session.id)
        }

        func act(_ action: Action) { lobby.act(action) { self.refusals.append($0) } }

        /// Cuts the player's links, and refuses new ones.
        func cut() {
            air.cut()
            air.block(dials: .refuse)
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
        var isPlaying: Bool { table?.game != nil }
        var isOffered: Bool { tableView?.isSeatOffered ?? false }
        /// The person at the other end.
        var other: Person? { tableView?.other }

        /// Whether it is the player's turn.
        var isOnTurn: Bool { table?.turn != nil && table?.turn == tableView?.ownDisc }
        /// Whether the player has won; nil if nobody has, or if the player only watches.
        var hasWon: Bool? {
            guard let winner = table?.game?.winner, let disc = tableView?.ownDisc else { return nil }
            return winner == disc
        }

        /// Whether the player's screen lists the table of this host.
        func sees(_ host: Player) -> Bool { view.tables.contains { $0.id == host.id } }

        /// The errors with which the player did not get to a table.
        var failures: [NighError] {
            news.compactMap { if case .couldNotJoin(_, let error) = $0 { error } else { nil } }
        }
        /// The number of peers that have asked for the player's seat.
        var requestCount: Int { news.count { if case .seatRequested = $0 { true } else { false } } }
        /// Whether the player is back in the lobby, because the host with this name closed the table or was lost.
        func isWithoutTable(of host: String) -> Bool {
            guard view.place == .lobby, case .tableClosed(host, _)? = news.last else { return false }
            return true
        }

        fileprivate func update(_ view: LobbyView, _ news: LobbyNews?) {
            guard !isKilled else { return }
            self.view = view
            if let news { self.news.append(news) }
            if let board, board != boards.last { boards.append(board) }
        }
    }

    /// The wire of all players, one that some have in addition, and one for guests.
    let network = SimulatedNetwork(
        wires: [
            SimulatedNetwork.Wire(), SimulatedNetwork.Wire("radio", priority: 200), SimulatedNetwork.Wire(),
        ])
    var loop: VirtualEventLoop { network.loop }
    private var hosts = 0

    func player(
        _ name: String, identity: Identity = .ephemeral(), trust: TrustStore = .ephemeral(),
        others: [any Transport] = [], security: SessionSecurity = .encrypted, on wires: [Int] = [0]
    ) -> Player {
        let player = Player(
            name, identity: identity, trust: trust, host: host(on: wires), others: others,
            security: security, loop: loop)
        player.lobby.start { player.update($0, $1) }
        return player
    }

    private func host(on wires: [Int]) -> SimulatedHost {
        hosts += 1
        return network.addHost(at: "host\(hosts)", on: wires)
    }

    /// Creates a peer that is no lobby.
    func session(_ name: String, role: SessionRole) -> Session {
        Session(
            SessionConfiguration(service: Lobby.service, name: DisplayName(fitting: name), role: role),
            identity: .ephemeral(), trust: .ephemeral(), transports: host(on: [0]).transports, loop: loop)
    }

    /// Lets time pass until `condition` holds. Fails if it does not hold in time.
    func wait(
        _ seconds: Int = 20, sourceLocation: SourceLocation = #_sourceLocation, until condition: () -> Bool
    ) throws {
        try #require(
            try loop.run(until: condition, within: .seconds(seconds)), sourceLocation: sourceLocation)
    }

    func pass(_ duration: Duration) throws { try loop.run(for: duration) }

    // MARK: Tables

    /// Makes `host` open a table that the others see.
    func open(_ host: Player, acceptsAll: Bool = false, seenBy others: Player...) throws {
        host.lobby.host(acceptsAll: acceptsAll)
        try wait { !host.view.addresses.isEmpty && others.allSatisfy { $0.sees(host) } }
    }

    /// Makes `host` open a table and `guest` take the seat.
    func seat(_ guest: Player, at host: Player) throws {
        try open(host, acceptsAll: true, seenBy: guest)
        guest.lobby.join(host.id, as: .seat)
        try wait { guest.isPlaying && host.table?.guest != nil }
    }

    /// Makes these players watch at the host's table, one after the other.
    func watch(_ host: Player, by watchers: [Player]) throws {
        for watcher in watchers {
            try wait { watcher.sees(host) }
            watcher.lobby.join(host.id, as: .watch)
            try wait { watcher.isPlaying }
        }
    }

    /// Makes these players ask for the host's seat.
    func ask(_ host: Player, by askers: Player...) throws {
        let count = host.view.seatRequests.count + askers.count
        for asker in askers { asker.lobby.join(host.id, as: .seat) }
        try wait { host.view.seatRequests.count == count }
    }

    /// Plays these columns, each by the player whose turn it is.
    func play(_ letters: String, _ host: Player, _ guest: Player) throws {
        for letter in letters {
            try wait { host.isOnTurn || guest.isOnTurn }
            let count = host.board?.count ?? 0
            (host.isOnTurn ? host : guest).lobby.act(.move(try column(String(letter))))
            try wait { host.board?.count == count + 1 && guest.board == host.board }
        }
    }
}
