import NighCore
import NighMemory
import NighTestKit
import Testing

@testable import FourInARow

/// Tests that a table goes on when its host leaves, with whole lobbies.
struct LostHostTests {
    enum Leaving: CaseIterable {
        case leaves, isKilled
    }

    private typealias Player = PlayerGroup.Player

    private static func leave(_ player: Player, _ leaving: Leaving) {
        switch leaving {
        case .leaves: player.lobby.leave()
        case .isKilled: player.kill()
        }
    }

    /// A table of Puma, at which Lynx plays, and Owls watch, in the order in which they came.
    private struct WatchedTable {
        let group = PlayerGroup()
        let identity = Identity.ephemeral()
        let puma: Player
        let lynx: Player
        let owls: [Player]
        var owl: Player { owls[0] }

        init(_ letters: String, watchers: Int = 1) throws {
            puma = group.player("Puma", identity: identity)
            lynx = group.player("Lynx")
            owls = (0..<watchers).map { [group] in group.player("Owl \($0)") }
            try group.seat(lynx, at: puma)
            try group.watch(puma, by: owls)
            try group.play(letters, puma, lynx)
        }

        /// Makes the host leave. Lynx hosts the table now, and the first Owl is offered the seat.
        func loseHost(_ leaving: Leaving = .leaves) throws {
            LostHostTests.leave(puma, leaving)
            try group.wait { owl.isOffered }
        }

        /// Makes the first Owl decline, and somebody else ask for the open seat.
        func ask(by player: Player) throws {
            owl.lobby.answerOffer(takesSeat: false)
            try group.wait { player.view.tables.first { $0.id == lynx.id }?.hasFreeSeat == true }
            try group.ask(lynx, by: player)
        }
    }

    @Test(arguments: Leaving.allCases, ["dde", "ddee"])
    func `When the host leaves, the guest and a watcher play the game to its end`(
        _ leaving: Leaving, _ letters: String
    ) throws {
        let table = try WatchedTable(letters, watchers: 4)
        let (group, puma, lynx, owls) = (table.group, table.puma, table.lynx, table.owls)
        let moves = try #require(puma.table?.game?.moves)
        try group.wait { owls.allSatisfy { $0.table?.game?.moves == moves } }
        try table.loseHost(leaving)
        #expect(lynx.news.contains(.hostLeft(name: "Puma", successor: nil)))
        #expect(owls.allSatisfy { $0.news.contains(.hostLeft(name: "Puma", successor: "Lynx")) })
        #expect(lynx.tableView?.isHost == true && lynx.tableView?.ownDisc == .yellow)
        #expect(lynx.table?.isWaiting == true && lynx.table?.game?.moves == moves)
        // Nobody can move while the seat is free, and only the first watcher is asked.
        lynx.act(.move(try column("a")))
        #expect(lynx.refusals == [.untimely])
        #expect(owls[1...].allSatisfy { !$0.isOffered })
        owls[0].lobby.answerOffer(takesSeat: true)
        try group.wait { lynx.table?.guest != nil && owls[0].tableView?.ownDisc == .red }
        try group.play(letters == "dde" ? "cebebe" : "cab", owls[0], lynx)
        #expect(lynx.table?.game?.ending == .line(.red) && owls[0].hasWon == true)
        try group.pass(.seconds(1))
        for player in [lynx] + owls { #expect(player.table?.game == lynx.table?.game) }
        #expect(owls.count { $0.tableView?.ownDisc != nil } == 1)
        #expect(lynx.table?.watcherCount == 3)
    }

    @Test(arguments: Leaving.allCases)
    func `If the guest leaves too, the table is gone`(_ leaving: Leaving) throws {
        let table = try WatchedTable("", watchers: 2)
        for player in [table.puma, table.lynx] { Self.leave(player, leaving) }
        try table.group.wait(60) { table.owls.allSatisfy { $0.isWithoutTable(of: "Puma") } }
    }

    @Test(arguments: [true, false])
    func `Each watcher has 10 s for the seat, however the last one gave it up`(_ declines: Bool) throws {
        let table = try WatchedTable("ddc", watchers: 3)
        let (group, owls) = (table.group, table.owls)
        try table.loseHost()
        try group.pass(.milliseconds(9_500))
        if declines { owls[0].lobby.answerOffer(takesSeat: false) } else { owls[0].lobby.leave() }
        try group.wait(1) { owls[1].isOffered }
        try group.pass(.seconds(9))
        #expect(!owls[2].isOffered)
        try group.wait(2) { owls[2].isOffered }
    }

    @Test func `The host that left gets its seat back without a question while it is free`() throws {
        let table = try WatchedTable("ddc")
        let (group, lynx, owl) = (table.group, table.lynx, table.owl)
        try table.loseHost(.isKilled)
        let again = group.player("Puma", identity: table.identity)
        try group.wait { again.sees(lynx) }
        again.lobby.join(lynx.id, as: .seat)
        try group.wait { again.tableView?.ownDisc == .red && lynx.table?.guest != nil }
        #expect(!owl.isOffered && lynx.view.seatRequests.isEmpty)
        #expect(again.table?.game?.moves == lynx.table?.game?.moves && lynx.isOnTurn)
        try group.play("cbb", again, lynx)
        try group.wait { owl.table == lynx.table && again.table == lynx.table }
    }

    @Test func `Somebody else may ask for the seat once no watcher wants it`() throws {
        let table = try WatchedTable("dd")
        let (group, lynx) = (table.group, table.lynx)
        let wren = group.player("Wren")
        try table.loseHost()
        wren.lobby.join(lynx.id, as: .seat)
        try group.wait { !wren.failures.isEmpty && wren.view.place == .lobby }
        #expect("\(wren.failures[0])".contains("the seat is offered to the watchers first"))
        try table.ask(by: wren)
        lynx.lobby.answer(wren.id, accept: true)
        try group.wait { wren.tableView?.ownDisc == .red }
        try group.play("ce", wren, lynx)
    }

    @Test func `Somebody who waits for the seat gets the reason when a watcher takes it`() throws {
        let table = try WatchedTable("dd")
        let (group, lynx) = (table.group, table.lynx)
        let (wren, swift) = (group.player("Wren"), group.player("Swift"))
        try table.loseHost()
        try table.ask(by: wren)
        try group.watch(lynx, by: [swift])
        try group.wait { swift.isOffered }
        swift.lobby.answerOffer(takesSeat: true)
        try group.wait(1) { swift.tableView?.ownDisc == .red }
        #expect(lynx.view.seatRequests.isEmpty)
        try group.wait(1) { wren.view.place == .lobby }
    }

    @Test func `A visitor of an older program watches as before, but not while a game waits`() throws {
        let table = try WatchedTable("dd")
        let (group, lynx, owl) = (table.group, table.lynx, table.owl)
        // Its join request has two bytes, and it knows only some messages.
        let old = group.session("Old", role: .client)
        nonisolated(unsafe) var messages: [[UInt8]] = []
        nonisolated(unsafe) var refusals: [NighError] = []
        old.start(
            onEvent: { _ in }, onMessage: { bytes, _ in messages.append(bytes.withUnsafeBytes(Array.init)) })
        func askToWatch() {
            old.invite(lynx.id, context: TableRole.watch.bytes) { result in
                if case .failure(let error) = result { refusals.append(error) }
            }
        }
        try table.loseHost(.isKilled)
        askToWatch()
        try group.wait { !refusals.isEmpty }
        #expect("\(refusals[0])".contains("older version of the game"))
        owl.lobby.answerOffer(takesSeat: true)
        try group.wait { owl.isOnTurn }
        askToWatch()
        try group.wait { !messages.isEmpty }
        try group.play("ce", owl, lynx)
        try group.pass(.seconds(1))
        // Read as an older program reads them.
        var visitor = VisitorTable()
        for message in messages {
            #expect(message[1] <= 2)
            for case .leave(let breach) in visitor.received(message) { Issue.record("it leaves: \(breach)") }
        }
        #expect(visitor.table?.game?.moves == lynx.table?.game?.moves)
        #expect(visitor.table?.guest == SafeText("Owl 0"))
    }

    @Test func `If only the guest loses the host, the guest's table closes`() throws {
        let table = try WatchedTable("dd")
        let (puma, lynx, owl) = (table.puma, table.lynx, table.owl)
        lynx.cut()
        try table.group.wait { lynx.tableView?.isHost == true }
        try table.group.wait(60) { lynx.isWithoutTable(of: "Puma") }
        #expect(owl.table == puma.table && puma.table?.guest == nil && owl.tableView?.host?.id == puma.id)
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `Hosts leave at any moment, and those who are left agree`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let group = PlayerGroup()
        let players = (0..<Int.random(in: 3...7, using: &generator)).map { group.player("Player \($0)") }
        try group.seat(players[1], at: players[0])
        try group.watch(players[0], by: Array(players[2...]))
        var left: Set<PeerID> = []
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            try playAtRandom(players, Int.random(in: 0...9, using: &generator), &generator)
            guard let host = players.first(where: { $0.tableView?.isHost == true && !left.contains($0.id) })
            else { break }
            let cut = try cutSomebody(host, players.filter { !left.contains($0.id) }, &generator)
            try group.pass(.microseconds(Int.random(in: 0...3_000, using: &generator)))
            Self.leave(host, Leaving.allCases.randomElement(using: &generator) ?? .leaves)
            left.insert(host.id)
            cut?.air.unblock()
            let rest = players.filter { !left.contains($0.id) }
            // No move that anybody has seen may be lost.
            let longest = rest.compactMap { $0.table?.game }
                .max { ($0.number, $0.moves.count) < ($1.number, $1.moves.count) }
            // Whoever is asked answers at random.
            for _ in 0..<80 {
                try group.pass(.milliseconds(500))
                for player in rest
                where player.isOffered && Int.random(in: 0...3, using: &generator) == 0 {
                    player.lobby.answerOffer(takesSeat: .random(using: &generator))
                }
            }
            try check(rest, longest)
        }

        /// Cuts a visitor now and then, and makes the host move meanwhile.
        func cutSomebody(
            _ host: Player, _ rest: [Player], _ generator: inout SeededGenerator
        ) throws -> Player? {
            guard .random(using: &generator),
                let visitor = rest.filter({ $0.id != host.id && $0.table != nil }).randomElement(
                    using: &generator)
            else { return nil }
            visitor.cut()
            try group.pass(.milliseconds(100))
            try playAtRandom([host], 1, &generator)
            try group.pass(.milliseconds(100))
            return visitor
        }

        func playAtRandom(_ players: [Player], _ count: Int, _ generator: inout SeededGenerator) throws {
            for _ in 0..<count {
                guard let mover = players.first(where: { $0.isOnTurn && !left.contains($0.id) }),
                    let column = Column.allCases.filter({ mover.board?.hasRoom(in: $0) ?? false })
                        .randomElement(using: &generator)
                else { continue }
                mover.lobby.act(.move(column))
                // Sometimes the host leaves before everybody knows of the move.
                try group.pass(.milliseconds(Int.random(in: 0...40, using: &generator)))
            }
        }
    }

    private func check(_ rest: [Player], _ longest: Game?) throws {
        let hosts = rest.filter { $0.tableView?.isHost == true }
        #expect(hosts.count <= 1, "two hosts")
        guard let host = hosts.first, let table = host.table else {
            #expect(rest.allSatisfy { $0.view.place == .lobby }, "somebody is at a table without a host")
            return
        }
        #expect(rest.count { $0.tableView?.isGuest == true } == (table.guest == nil ? 0 : 1))
        for player in rest where player.table != nil { #expect(player.table == table) }
        #expect(rest.count { $0.table != nil && $0.tableView?.ownDisc == nil } == table.watcherCount)
        guard let game = table.game, let longest, game.number == longest.number else { return }
        #expect(game.moves.starts(with: longest.moves), "a move is lost")
    }
}
