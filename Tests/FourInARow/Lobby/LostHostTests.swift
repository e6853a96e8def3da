import NighCore
import NighMemory
import NighTestKit
import Testing

@testable import FourInARow

/// Tests that a table goes on when its host leaves, with whole lobbies.
struct LostHostTests {
    /// How a player leaves.
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

    /// Makes these players watch at the host's table, one after the other.
    private static func watch(_ watchers: [Player], _ host: Player, _ group: PlayerGroup) throws {
        for watcher in watchers {
            try #require(try group.wait(until: { watcher.view.tables.contains { $0.id == host.id } }))
            watcher.lobby.join(host.id, as: .watch)
            try #require(try group.wait(until: { watcher.table != nil }))
        }
    }

    private static func isOffered(_ player: Player) -> Bool { player.tableView?.isSeatOffered ?? false }

    @Test(
        "When the host leaves, the guest hosts the table, a watcher takes the seat, and the game is played to its end",
        arguments: Leaving.allCases, ["dde", "ddee"])
    func goesOn(_ leaving: Leaving, _ letters: String) throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        let owls = (0..<4).map { group.player("Owl \($0)") }
        try #require(try group.seated(puma, lynx))
        try Self.watch(owls, puma, group)
        try #require(try group.play(letters, puma, lynx))
        let moves = try #require(puma.table?.game?.moves)
        try #require(try group.wait(until: { owls.allSatisfy { $0.table?.game?.moves == moves } }))
        Self.leave(puma, leaving)
        try #require(try group.wait(until: { Self.isOffered(owls[0]) }))
        #expect(lynx.news.contains(.hostLeft(name: "Puma", successor: nil)))
        #expect(owls.allSatisfy { $0.news.contains(.hostLeft(name: "Puma", successor: "Lynx")) })
        #expect(lynx.tableView?.isHost == true && lynx.tableView?.ownDisc == .yellow)
        #expect(lynx.table?.isWaiting == true && lynx.table?.game?.moves == moves)
        // Nobody can move while the seat is free, and only the first watcher is asked.
        lynx.act(.move(try column("a")))
        #expect(lynx.refusals == [.untimely])
        #expect(owls[1...].allSatisfy { !Self.isOffered($0) })
        owls[0].lobby.answerOffer(takesSeat: true)
        try #require(
            try group.wait(until: { lynx.table?.guest != nil && owls[0].tableView?.ownDisc == .red }))
        #expect(try group.play(letters == "dde" ? "cebebe" : "cab", owls[0], lynx))
        #expect(lynx.table?.game?.ending == .line(.red) && owls[0].standing == .iWin)
        try group.pass(.seconds(1))
        for player in [lynx] + owls { #expect(player.table?.game == lynx.table?.game) }
        #expect(owls.count { $0.tableView?.ownDisc != nil } == 1)
        #expect(lynx.table?.watcherCount == 3)
    }

    @Test("If the guest leaves too, or nobody watches, the table is gone", arguments: Leaving.allCases)
    func nobodyLeft(_ leaving: Leaving) throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        let owls = (0..<2).map { group.player("Owl \($0)") }
        try #require(try group.seated(puma, lynx))
        try Self.watch(owls, puma, group)
        for player in [puma, lynx] { Self.leave(player, leaving) }
        #expect(try group.wait(60, until: { owls.allSatisfy { $0.view.place == .lobby } }))
        for owl in owls {
            guard case .tableClosed(name: "Puma", _)? = owl.news.last else {
                Issue.record("\(owl.news.suffix(3))")
                return
            }
        }
    }

    @Test(
        "A watcher who declines goes on watching, and the next is asked; one who does not answer can still accept"
    )
    func inOrder() throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        let owls = (0..<3).map { group.player("Owl \($0)") }
        try #require(try group.seated(puma, lynx))
        try Self.watch(owls, puma, group)
        try #require(try group.play("ddc", puma, lynx))
        puma.kill()
        try #require(try group.wait(until: { Self.isOffered(owls[0]) }))
        owls[0].lobby.answerOffer(takesSeat: false)
        try #require(try group.wait(2, until: { Self.isOffered(owls[1]) }))
        #expect(!Self.isOffered(owls[0]) && !Self.isOffered(owls[2]))
        // The second does not answer for a while.
        try #require(try group.wait(11, until: { Self.isOffered(owls[2]) }))
        owls[1].lobby.answerOffer(takesSeat: true)
        owls[2].lobby.answerOffer(takesSeat: true)
        try group.pass(.seconds(1))
        #expect(owls.count { $0.tableView?.ownDisc == .red } == 1)
        #expect(owls.allSatisfy { !Self.isOffered($0) && $0.table == lynx.table })
        #expect(lynx.table?.guest != nil && lynx.table?.watcherCount == 2)
    }

    @Test(
        "Each watcher has 10 s for the seat, also one who is asked because the last declined or left",
        arguments: [true, false])
    func wholeTime(_ declines: Bool) throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        let owls = (0..<3).map { group.player("Owl \($0)") }
        try #require(try group.seated(puma, lynx))
        try Self.watch(owls, puma, group)
        try #require(try group.play("ddc", puma, lynx))
        puma.lobby.leave()
        try #require(try group.wait(until: { Self.isOffered(owls[0]) }))
        try group.pass(.milliseconds(9_500))
        if declines { owls[0].lobby.answerOffer(takesSeat: false) } else { owls[0].lobby.leave() }
        try #require(try group.wait(1, until: { Self.isOffered(owls[1]) }))
        try group.pass(.seconds(9))
        #expect(!Self.isOffered(owls[2]))
        #expect(try group.wait(2, until: { Self.isOffered(owls[2]) }))
    }

    @Test("The host that left gets its seat back without a question while it is free")
    func hostReturns() throws {
        let group = PlayerGroup()
        let identity = Identity.ephemeral()
        let (puma, lynx) = (group.player("Puma", identity: identity), group.player("Lynx"))
        let owl = group.player("Owl")
        try #require(try group.seated(puma, lynx))
        try Self.watch([owl], puma, group)
        try #require(try group.play("ddc", puma, lynx))
        puma.kill()
        try #require(try group.wait(until: { Self.isOffered(owl) }))
        let again = group.player("Puma", identity: identity)
        try #require(try group.wait(until: { again.view.tables.contains { $0.id == lynx.id } }))
        again.lobby.join(lynx.id, as: .seat)
        try #require(try group.wait(until: { again.tableView?.ownDisc == .red && lynx.table?.guest != nil }))
        #expect(!Self.isOffered(owl) && lynx.view.seatRequests.isEmpty)
        #expect(again.table?.game?.moves == lynx.table?.game?.moves && lynx.standing == .myTurn)
        #expect(try group.play("cbb", again, lynx))
        #expect(try group.wait(until: { owl.table == lynx.table && again.table == lynx.table }))
    }

    @Test("Somebody else may take the seat once no watcher wants it, and the host's person is asked")
    func outsider() throws {
        let group = PlayerGroup()
        let (puma, lynx, owl) = (group.player("Puma"), group.player("Lynx"), group.player("Owl"))
        let wren = group.player("Wren")
        try #require(try group.seated(puma, lynx))
        try Self.watch([owl], puma, group)
        try #require(try group.play("dd", puma, lynx))
        puma.lobby.leave()
        try #require(try group.wait(until: { Self.isOffered(owl) }))
        wren.lobby.join(lynx.id, as: .seat)
        try #require(try group.wait(until: { wren.view.place == .lobby }))
        guard case .couldNotJoin(_, let error)? = wren.news.last else {
            Issue.record("\(wren.news)")
            return
        }
        #expect("\(error)".contains("the seat is offered to the watchers first"))
        owl.lobby.answerOffer(takesSeat: false)
        try #require(
            try group.wait(until: { wren.view.tables.first { $0.id == lynx.id }?.hasFreeSeat == true }))
        wren.lobby.join(lynx.id, as: .seat)
        try #require(try group.wait(until: { !lynx.view.seatRequests.isEmpty }))
        lynx.lobby.answer(wren.id, accept: true)
        #expect(try group.wait(until: { wren.tableView?.ownDisc == .red }))
        #expect(try group.play("ce", wren, lynx))
    }

    @Test("Somebody who waits for the seat gets the reason when a watcher takes it")
    func outsiderTooLate() throws {
        let group = PlayerGroup()
        let (puma, lynx, owl) = (group.player("Puma"), group.player("Lynx"), group.player("Owl"))
        let (wren, swift) = (group.player("Wren"), group.player("Swift"))
        try #require(try group.seated(puma, lynx))
        try Self.watch([owl], puma, group)
        try #require(try group.play("dd", puma, lynx))
        puma.lobby.leave()
        try #require(try group.wait(until: { Self.isOffered(owl) }))
        owl.lobby.answerOffer(takesSeat: false)
        try #require(
            try group.wait(until: { wren.view.tables.first { $0.id == lynx.id }?.hasFreeSeat == true }))
        wren.lobby.join(lynx.id, as: .seat)
        try #require(try group.wait(until: { !lynx.view.seatRequests.isEmpty }))
        try Self.watch([swift], lynx, group)
        try #require(try group.wait(until: { Self.isOffered(swift) }))
        swift.lobby.answerOffer(takesSeat: true)
        try #require(try group.wait(1, until: { swift.tableView?.ownDisc == .red }))
        #expect(lynx.view.seatRequests.isEmpty)
        #expect(try group.wait(1, until: { wren.view.place == .lobby }))
    }

    @Test("Between games, the guest hosts the table, and the watcher who takes the seat begins another game")
    func betweenGames() throws {
        let group = PlayerGroup()
        let (puma, lynx, owl) = (group.player("Puma"), group.player("Lynx"), group.player("Owl"))
        try #require(try group.seated(puma, lynx))
        try Self.watch([owl], puma, group)
        try #require(try group.play("abababa", puma, lynx))
        puma.lobby.leave()
        try #require(try group.wait(until: { Self.isOffered(owl) }))
        for player in [lynx, owl] {
            let endings = player.news.count { if case .table(.ended) = $0 { true } else { false } }
            #expect(endings == 1, "the end of a game is news once")
        }
        owl.lobby.answerOffer(takesSeat: true)
        #expect(try group.wait(until: { owl.table?.game?.number == 2 && lynx.standing == .myTurn }))
        #expect(try group.play("ddc", lynx, owl))
    }

    /// A visitor of an older program: its wish has two bytes, and it knows only some messages.
    ///
    /// `@unchecked Sendable`: everything runs on the one thread that runs the virtual loop.
    private final class OlderVisitor: @unchecked Sendable {
        private let session: Session
        private(set) var messages: [[UInt8]] = []
        private(set) var refusals: [NighError] = []

        init(_ group: PlayerGroup) {
            session = Session(
                SessionConfiguration(
                    service: Lobby.service, name: DisplayName(fitting: "Old"), role: .client),
                identity: .ephemeral(), transports: [MemoryTransport(hub: group.hub)], loop: group.loop)
            session.start(
                onEvent: { _ in },
                onMessage: { [unowned self] bytes, _ in messages.append(bytes.withUnsafeBytes { Array($0) }) }
            )
        }

        func ask(_ host: PeerID, _ wish: TableWish) {
            session.invite(host, context: wish.bytes) { [unowned self] result in
                if case .failure(let error) = result { refusals.append(error) }
            }
        }
    }

    @Test("A visitor of an older program plays and watches as before, and cannot join while a game waits")
    func olderVisitor() throws {
        let group = PlayerGroup()
        let (puma, lynx, owl) = (group.player("Puma"), group.player("Lynx"), group.player("Owl"))
        let old = OlderVisitor(group)
        try #require(try group.seated(puma, lynx))
        try Self.watch([owl], puma, group)
        try #require(try group.play("dd", puma, lynx))
        puma.kill()
        try #require(try group.wait(until: { Self.isOffered(owl) }))
        old.ask(lynx.id, .watch)
        try #require(try group.wait(until: { !old.refusals.isEmpty }))
        #expect("\(old.refusals[0])".contains("older version of the game"))
        owl.lobby.answerOffer(takesSeat: true)
        try #require(try group.wait(until: { owl.standing == .myTurn }))
        old.ask(lynx.id, .watch)
        try #require(try group.wait(until: { !old.messages.isEmpty }))
        try #require(try group.play("ce", owl, lynx))
        try group.pass(.seconds(1))
        // Read as an older program reads them.
        var table = VisitorTable()
        for message in old.messages {
            #expect(message[1] <= 2)
            for output in table.received(message) {
                if case .leave(let breach) = output { Issue.record("it leaves: \(breach)") }
            }
        }
        #expect(table.table?.game?.moves == lynx.table?.game?.moves && table.table?.guest == Words("Owl"))
    }

    @Test("If only the guest loses the host, the watchers stay with the host, and the guest's table closes")
    func onlyTheGuestIsCut() throws {
        let group = PlayerGroup()
        let (puma, lynx, owl) = (group.player("Puma"), group.player("Lynx"), group.player("Owl"))
        try #require(try group.seated(puma, lynx))
        try Self.watch([owl], puma, group)
        try #require(try group.play("dd", puma, lynx))
        lynx.cut()
        try #require(try group.wait(until: { lynx.tableView?.isHost == true }))
        #expect(try group.wait(60, until: { lynx.view.place == .lobby }))
        guard case .tableClosed(name: "Puma", _)? = lynx.news.last else {
            Issue.record("\(lynx.news.suffix(3))")
            return
        }
        #expect(owl.table == puma.table && puma.table?.guest == nil && owl.tableView?.host?.id == puma.id)
    }

    @Test(
        "A move that the guest has not seen when the host is killed is on everybody's board",
        arguments: [true, false])
    func lastMove(_ moverIsHost: Bool) throws {
        let group = PlayerGroup()
        let (puma, lynx) = (group.player("Puma"), group.player("Lynx"))
        let owls = (0..<3).map { group.player("Owl \($0)") }
        try #require(try group.seated(puma, lynx))
        try Self.watch(owls, puma, group)
        try #require(try group.play(moverIsHost ? "dd" : "d", puma, lynx))
        lynx.cut()
        (moverIsHost ? puma : lynx).act(.move(try column("e")))
        try group.pass(.seconds(1))
        #expect(owls.allSatisfy { ($0.board?.count == 3) == moverIsHost })
        puma.kill()
        lynx.air.control.unblock()
        try #require(try group.wait(40, until: { owls.contains(where: Self.isOffered) }))
        for player in [lynx] + owls {
            #expect(player.table?.game?.moves.map(\.description).joined() == (moverIsHost ? "dde" : "de"))
        }
    }

    @Test("Hosts leave at any moment, and those who are left agree", arguments: 0..<60 as Range<UInt64>)
    func anyMoment(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let group = PlayerGroup()
        let players = (0..<Int.random(in: 3...7, using: &generator)).map { group.player("Player \($0)") }
        try #require(try group.seated(players[0], players[1]))
        try Self.watch(Array(players[2...]), players[0], group)
        var left: Set<PeerID> = []
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            try playAtRandom(players, Int.random(in: 0...9, using: &generator), &generator)
            guard let host = players.first(where: { $0.tableView?.isHost == true && !left.contains($0.id) })
            else { break }
            let cut = try cutSomebody(host, players.filter { !left.contains($0.id) }, &generator)
            try group.pass(.microseconds(Int.random(in: 0...3_000, using: &generator)))
            Self.leave(host, Leaving.allCases.randomElement(using: &generator) ?? .leaves)
            left.insert(host.id)
            cut?.air.control.unblock()
            let rest = players.filter { !left.contains($0.id) }
            // No move that anybody has seen may be lost.
            let longest = rest.compactMap { $0.table?.game }
                .max { ($0.number, $0.moves.count) < ($1.number, $1.moves.count) }
            // Whoever is asked answers at random.
            for _ in 0..<80 {
                try group.pass(.milliseconds(500))
                for player in rest
                where Self.isOffered(player) && Int.random(in: 0...3, using: &generator) == 0 {
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
                guard let mover = players.first(where: { $0.standing == .myTurn && !left.contains($0.id) }),
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
