import NighCore
import Testing

@testable import FourInARow

/// Tests that a table goes on when its host leaves: the values alone.
struct TakingOverTests {
    private typealias Simulation = TableSimulation
    private static let owls = TableSimulation.owls

    private static func playing(_ letters: String, watchers: Int = 4) throws -> TableSimulation {
        try TableSimulation.playing(letters, watchers: watchers, canStay: true)
    }

    /// A table whose guest has taken it over after these moves.
    private static func takenOver(_ letters: String, following order: [PeerID]? = nil) throws
        -> TableSimulation
    {
        var table = try playing(letters)
        try #require(try table.loseHost(order))
        return table
    }

    @Test(arguments: ["", "d", "dd", "dde", "abababcdefg"])
    func `The guest takes over the game as it is, whoever's turn it was`(_ letters: String) throws {
        let before = try Self.playing(letters).host.table.shown
        var table = try Self.takenOver(letters)
        #expect(table.hostID == Simulation.lynx && table.host.formerHost == Simulation.puma)
        #expect(table.host.table.hostDisc == .yellow && table.host.table.isWaiting && table.isOneTable)
        #expect(table.host.table.shown.game == before.game)
        for action in [Action.move(try column("a")), .resign] {
            #expect(throws: Breach.untimely) { try table.host.act(action) }
        }
        table.offerSeat()
        #expect(table.news[Self.owls[0]]?.last == .seatOffered)
        table.answer(Self.owls[0], takesSeat: true)
        #expect(table.host.guest == Self.owls[0] && table.host.table.watcherCount == 3)
        #expect(table.visitors[Self.owls[0]]?.isSeated == true && table.isOneTable)
        // People see the player of the seat in the colour of the host that left, and the same turn.
        #expect(table.host.table.shown.game == before.game)
        try table.move("g")
        #expect(table.letters == letters + "g" && table.isOneTable)
    }

    @Test func `The next guest takes over from the next host, and people see the first colours again`() throws
    {
        var table = try Self.takenOver("dd")
        table.offerSeat()
        table.answer(Self.owls[0], takesSeat: true)
        try table.move("e")
        #expect(try table.loseHost())
        #expect(table.hostID == Self.owls[0] && table.host.table.hostDisc == .red && table.isOneTable)
        table.offerSeat()
        table.answer(Self.owls[1], takesSeat: true)
        try table.move("e")
        #expect(table.letters == "ddee" && table.isOneTable)
    }

    @Test(arguments: 0..<4, [false, true])
    func `A last move of the host that only one watcher saw is not lost`(
        _ watcher: Int, _ comesLast: Bool
    ) throws {
        var table = try Self.playing("dd")
        let owl = Self.owls[watcher]
        table.unreached = Set(table.visitors.keys).subtracting([owl])
        try table.move("e")
        let others = Self.owls.filter { $0 != owl }
        try #require(try table.loseHost(comesLast ? others + [owl] : [owl] + others))
        #expect(table.letters == "dde" && table.isOneTable)
        #expect(table.host.table.shown.game?.turn == .yellow)
    }

    @Test(arguments: [true, false])
    func `A last move that won for the host, or its resignation, counts`(_ wins: Bool) throws {
        var table = try Self.playing("ababab")
        table.unreached = Set(table.visitors.keys).subtracting([Self.owls[2]])
        try table.act(wins ? .move(try column("a")) : .resign, by: .red)
        table.deliverAll()
        try #require(try table.loseHost())
        #expect(table.host.table.shown.game?.ending == (wins ? .line(.red) : .resigned(.red)))
        #expect(!table.host.table.isWaiting && table.isOneTable)
        // Whoever takes the seat begins another game.
        table.offerSeat()
        table.answer(Self.owls[0], takesSeat: true)
        #expect(table.host.table.game?.number == 2 && table.host.table.isPlaying && table.isOneTable)
        #expect(table.visitors[Self.owls[0]]?.isSeated == true)
    }

    @Test func `A table goes on between games, too`() throws {
        var table = try Self.takenOver("abababa")
        #expect(table.host.table.shown.game?.ending == .line(.red) && table.isOneTable)
        table.offerSeat()
        table.answer(Self.owls[0], takesSeat: true)
        for peer in [Simulation.lynx, Self.owls[0]] {
            let endings = table.news[peer]?.count { if case .ended = $0 { true } else { false } }
            #expect(endings == 1, "the end of a game is news once")
        }
        // The host moves first, as at any table.
        #expect(table.host.table.game?.turn == .red && table.host.table.shown.game?.turn == .yellow)
        try table.move("d")
        #expect(table.isOneTable)
    }

    @Test(arguments: [true, false])
    func `A move of the guest that was under way counts once`(_ hostHeard: Bool) throws {
        var table = try Self.playing("d")
        table.hostHears = hostHeard
        table.unreached = [Simulation.lynx]
        try table.move("e")
        // The host has answered with a move that the guest has not seen either.
        if hostHeard { try table.move("f") }
        try #require(try table.loseHost())
        #expect(table.letters == (hostHeard ? "def" : "de") && table.isOneTable)
    }

    @Test func `A watcher cannot make up a move of the guest, a second move, or another game`() throws {
        var table = try Self.takenOver("dd")
        func lost(_ letters: String, from host: PeerID = Simulation.puma, number: UInt32 = 1) throws
            -> LostTable
        {
            LostTable(host: host, game: try game(letters, number: number))
        }
        for one in try [
            lost("dd"), lost("de"), lost("ddg", from: Self.owls[0]), lost("ddg", number: 2), lost("d"),
            lost("ggggg"),
        ] { #expect(table.host.adopt(one).isEmpty) }
        table.carryOut(table.host.adopt(try lost("ddef")))
        #expect(table.letters == "dde", "the move of the host that left, and not the guest's own")
        #expect(table.host.adopt(try lost("ddefg")).isEmpty)
        // Once somebody plays on, the list is what they play.
        table.offerSeat()
        table.answer(Self.owls[0], takesSeat: true)
        try table.move("a")
        #expect(table.host.adopt(try lost("ddeab")).isEmpty)
    }

    @Test func `The seat is offered to the watchers in the order in which they came`() throws {
        var table = try Self.takenOver("dd", following: Self.owls.reversed())
        for (index, owl) in Self.owls.enumerated() {
            #expect(table.host.isSeatReserved)
            if index == 0 { table.offerSeat() }
            #expect(Self.owls.filter { table.visitors[$0]?.isSeatOffered == true } == [owl])
            if index == 1 { table.leave(owl) } else { table.answer(owl, takesSeat: false) }
        }
        #expect(!table.host.isSeatReserved && table.host.hasOpenSeat)
        // Nobody may take what is no longer offered.
        table.carryOut(table.host.received(TableMessage.answer(takesSeat: true).bytes, from: Self.owls[0]))
        #expect(table.host.guest == nil)
    }

    @Test func `Of two who accept, the first gets the seat`() throws {
        var table = try Self.takenOver("dd")
        for _ in 0..<2 { table.offerSeat() }
        table.answer(Self.owls[1], takesSeat: true)
        table.answer(Self.owls[0], takesSeat: true)
        #expect(table.host.guest == Self.owls[1] && table.isOneTable)
        #expect(Self.owls.filter { table.visitors[$0]?.isSeated == true } == [Self.owls[1]])
    }

    @Test func `The host that left may sit down again, and plays on in its colour`() throws {
        var table = try Self.takenOver("dd")
        table.offerSeat()
        let before = table.news[Simulation.puma]?.count ?? 0
        try table.seat(Simulation.puma, canStay: true)
        #expect(table.visitors[Simulation.puma]?.isSeated == true && table.isOneTable)
        #expect(table.visitors[Self.owls[0]]?.isSeatOffered == false)
        let seen = table.news[Simulation.puma]?.dropFirst(before).map(\.self)
        #expect(seen == [.joined(seated: true), .resumed(try Simulation.name(Simulation.puma))])
        try table.move("e")
        #expect(table.letters == "dde" && table.host.table.shown.game?.turn == .yellow)
    }

    @Test func `Without a guest or a watcher that can stay, nobody takes over`() throws {
        var noGuest = try Self.playing("dd")
        noGuest.leave(Simulation.lynx)
        var gone = try Self.playing("dd", watchers: 1)
        gone.leave(Self.owls[0])
        // Visitors of older programs are not followed, and do not follow.
        let oldGuest = try TableSimulation.playing("dd", watchers: 4)
        var oldWatcher = try Self.playing("dd", watchers: 0)
        try oldWatcher.watch(Self.owls[0])
        for var table in [noGuest, gone, try Self.playing("dd", watchers: 0), oldGuest, oldWatcher] {
            #expect(try !table.loseHost())
        }
    }

    @Test func `Visitors of older programs get no message that they do not know`() throws {
        // Kinds 1 and 2 and events 1 to 8 are all that an older program knows.
        var host = HostTable()
        var outputs = host.seat(Simulation.lynx, name: try words("Lynx"), canStay: true)
        outputs += host.watch(Self.owls[0]) ?? []
        outputs += host.watch(Self.owls[1], stayingAs: try words("Owl")) ?? []
        for case .send(let bytes, let peers) in outputs where peers.contains(Self.owls[0]) {
            #expect(bytes[1] <= 2)
        }
        #expect(outputs.contains { if case .send(let bytes, _) = $0 { bytes[1] == 4 } else { false } })
    }

    @Test func `A host cannot seat a watcher that did not accept, or offer a seat that is taken`() throws {
        let table = try Self.playing("dd", watchers: 1)
        for (note, breach) in [
            (TableMessage.SeatNote.given, Breach.falseReport), (.offered, .untimely),
        ] {
            var owl = try #require(table.visitors[Self.owls[0]])
            #expect(owl.received(TableMessage.seat(note).bytes) == [.leave(breach)])
        }
    }
}
