import Distributed
import FourActors
import Nigh
import NighActors

/// The program on one device, apart from its terminal.
struct Program<Lines: AsyncSequence<String, Never> & Sendable>: Sendable {
    var name: String?
    var transports: String?
    /// Whether the side plays by itself, without a person.
    var isBot = false
    /// The lines that a person types.
    let lines: Lines
    let show: @Sendable (String) -> Void

    /// Has a table, and plays at it.
    func host() async throws {
        try await meet { session, actors in
            let table = Table(actorSystem: actors)
            try actors.publish(table, as: "table", through: $GameTable.self)
            show("waiting for a player: run FourActors join on another device")
            try await race {
                for await case .disconnected(let peer, _) in session.events {
                    await table.whenLocal { $0.leave(peer.id) }
                }
            } or: {
                async let telling: Void? = table.whenLocal { await $0.run() }
                try await play(at: actors.share(table, through: $GameTable.self), actors, session)
                await table.whenLocal { $0.leave(session.id) }
                await telling
                // The others see the end, and leave.
                try await race {
                    for await peers in session.peerLists where !peers.contains(where: \.isConnected) {
                        return
                    }
                } or: {
                    try await session.clock.sleep(for: .seconds(5))
                }
            }
        }
    }

    /// Plays at the first table that has a free seat.
    func join() async throws {
        try await meet { session, actors in
            show("looking for a table: run FourActors host on another device")
            for await tables in actors.listing(of: $GameTable.self) {
                for table in tables {
                    do {
                        return try await race {
                            try await play(at: table.actor, actors, session)
                        } or: {
                            for await peers in session.peerLists
                            where !peers.contains(where: { $0.id == table.peer.id && $0.isConnected }) {
                                return
                            }
                        }
                    } catch TableError.taken {
                        show("\(table.peer.name): \(TableError.taken)")
                    }
                }
            }
        }
    }

    /// Shows the game at the first table.
    func watch() async throws {
        try await meet { session, actors in
            show("looking for a table to watch")
            for await table in actors.listing(of: $GameTable.self).compactMap(\.first) {
                show("watching the table of \(table.peer.name)")
                for try await position in try await table.actor.positions() { show(position) }
                return
            }
        }
    }

    private func meet(_ body: (Session, NighActors.ActorSystem) async throws -> Void) async throws {
        try await withSession(
            service: "fouractors", name: name, transports: transports, endsOnInterrupt: true
        ) { session in
            session.connectsAutomatically = true
            let actors = try ActorSystem(session, errors: [TableError.self])
            async let _: Void = report(session)
            try await body(session, actors)
        }
    }

    /// Shows how the connections fare.
    private func report(_ session: Session) async {
        for await event in session.events {
            switch event {
            case .connected, .reconnecting, .reconnected, .disconnected, .transportDown, .problem:
                show("\(event)")
            default: break
            }
        }
    }

    /// Plays a game: shows the positions, and drops discs as the person or the bot says.
    private func play(
        at table: $GameTable, _ actors: NighActors.ActorSystem, _ session: Session
    ) async throws {
        let (positions, continuation) = AsyncStream.makeStream(of: Position.self)
        let player = Player(actorSystem: actors, positions: continuation)
        defer { withExtendedLifetime(player) {} }
        show("you are \(try await table.sit(actors.share(player, through: $GamePlayer.self)))")
        if isBot { return try await follow(positions, at: table, session) }
        try await race {
            try await follow(positions, at: table, session)
        } or: {
            // Text that is no number is no column either.
            for await line in lines { try await drop(into: Int(line) ?? 0, at: table) }
        }
    }

    /// Shows the positions in which it is this side's turn, and the last one. A bot drops a disc.
    private func follow(
        _ positions: AsyncStream<Position>, at table: $GameTable, _ session: Session
    ) async throws {
        for await position in positions {
            show(position)
            guard position.ending == nil else { return }
            if !isBot {
                show("your turn: type a column")
            } else if let column = position.suggestion {
                try await session.clock.sleep(for: .milliseconds(500))
                try await drop(into: column, at: table)
            }
        }
    }

    private func drop(into column: Int, at table: $GameTable) async throws {
        do {
            let position = try await table.drop(into: column)
            // The last position comes to both players.
            if position.ending == nil { show(position) }
        } catch let error as TableError {
            show("\(error)")
        }
    }

    private func show(_ position: Position) {
        show("\(position)\n\(position.ending.map { "\($0)" } ?? "\(position.turn)'s turn")")
    }
}

/// Runs both until one of them ends.
private func race(
    _ first: @escaping @Sendable () async throws -> Void,
    or second: @escaping @Sendable () async throws -> Void
) async throws {
    try await withThrowingTaskGroup { group in
        group.addTask { try await first() }
        group.addTask { try await second() }
        defer { group.cancelAll() }
        try await group.next()
    }
}
