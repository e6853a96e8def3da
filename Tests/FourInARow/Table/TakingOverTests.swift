import NighCore
import Testing

@testable import FourInARow

/// The tables of a host, its guest and its watchers, of whom any may leave. Messages arrive at once, except those that
/// the test withholds.
private struct Stage {
    static let puma = TableSimulation.peer(9)
    static let lynx = TableSimulation.peer(1)
    static let owls = (2...5).map { TableSimulation.peer($0) }

    /// The peer that hosts now.
    var hostID = Self.puma
    var host = HostTable()
    var visitors: [PeerID: VisitorTable] = [:]
    var news: [PeerID: [TableNews]] = [:]
    /// Those whom messages of the host do not reach.
    var unreached: Set<PeerID> = []
    /// Whether the host gets messages.
    var hostHears = true

    static func name(_ peer: PeerID) throws -> Words { try TableMessageTests.words("Peer \(peer.bytes[0])") }

    /// A game after these moves, with some watchers.
    init(_ letters: String, watchers: Int = 4, canStay: Bool = true) throws {
        seat(Self.lynx, try Self.name(Self.lynx), canStay: canStay)
        for owl in Self.owls.prefix(watchers) { try watch(owl) }
        for letter in letters { try move(String(letter)) }
    }

    mutating func seat(_ peer: PeerID, _ name: Words, canStay: Bool = true) {
        visitors[peer] = VisitorTable()
        carryOut(host.seat(peer, name: name, canStay: canStay))
    }

    mutating func watch(_ peer: PeerID, canStay: Bool = true) throws {
        visitors[peer] = VisitorTable()
        let outputs = host.watch(peer, stayingAs: canStay ? try Self.name(peer) : nil)
        carryOut(try #require(outputs))
    }

    mutating func carryOut(_ outputs: [HostTable.Output]) {
        for case .send(let bytes, let peers) in outputs {
            for peer in peers where !unreached.contains(peer) {
                carryOut(visitors[peer]?.received(bytes) ?? [], peer)
            }
        }
    }

    mutating func carryOut(_ outputs: [VisitorTable.Output], _ peer: PeerID) {
        for output in outputs {
            switch output {
            case .send(let bytes): if hostHears { carryOut(host.received(bytes, from: peer)) }
            case .show(let one): news[peer, default: []].append(one)
            case .leave(let breach): Issue.record("\(peer.short) leaves: \(breach)")
            }
        }
    }

    mutating func act(_ action: Action, by disc: Disc) throws {
        if disc == .red { return carryOut(try host.act(action)) }
        let guest = try #require(host.guest)
        guard var visitor = visitors[guest] else { return }
        let outputs = try visitor.act(action)
        visitors[guest] = visitor
        carryOut(outputs, guest)
    }

    mutating func move(_ letter: String) throws {
        try act(.move(try column(letter)), by: try #require(host.table.turn))
    }

    mutating func answer(_ peer: PeerID, takesSeat: Bool) {
        let outputs = visitors[peer]?.answerOffer(takesSeat: takesSeat) ?? []
        carryOut(outputs, peer)
    }

    /// The host is gone. Returns whether somebody has taken over the table. The others follow in `order`.
    mutating func loseHost(_ order: [PeerID]? = nil) throws -> Bool {
        let lost = visitors
        let former = hostID
        let losses = lost.mapValues { $0.afterLoss(of: former) }
        let successors = losses.filter { if case .takeOver = $0.value { true } else { false } }
        #expect(successors.count <= 1)
        visitors = [:]
        unreached = []
        hostHears = true
        guard let (successor, loss) = successors.first, case .takeOver(let table) = loss else {
            for case .follow in losses.values { Issue.record("somebody follows nobody") }
            return false
        }
        host = table
        hostID = successor
        for peer in order ?? losses.keys.sorted() where peer != successor {
            guard case .follow(let wanted, let lostTable)? = losses[peer] else { continue }
            #expect(wanted == successor)
            let request = JoinRequest(.watch, lostTable: lostTable)
            let read = try JoinRequest(request.bytes)
            #expect(read == request)
            if let table = read.lostTable { carryOut(host.adopt(table)) }
            try watch(peer)
        }
        return true
    }

    var isOneTable: Bool { visitors.values.allSatisfy { $0.table == host.table } }
    var letters: String { host.table.game?.moves.map(\.description).joined() ?? "" }
}

/// Tests that a table goes on when its host leaves: the values alone.
struct TakingOverTests {
    @Test(
        "The guest takes over the game as it is, whoever's turn it was",
        arguments: ["", "d", "dd", "dde", "abababcdefg"])
    func takingOver(_ letters: String) throws {
        var stage = try Stage(letters)
        let before = stage.host.table.shown
        try #require(try stage.loseHost())
        #expect(stage.hostID == Stage.lynx && stage.host.formerHost == Stage.puma)
        #expect(stage.host.table.hostDisc == .yellow && stage.host.table.isWaiting && stage.isOneTable)
        #expect(stage.host.table.shown.game == before.game)
        #expect(throws: Breach.untimely) { try stage.host.act(.move(column("a"))) }
        #expect(throws: Breach.untimely) { try stage.host.act(.resign) }
        stage.carryOut(stage.host.offerSeat())
        #expect(stage.news[Stage.owls[0]]?.last == .seatOffered)
        stage.answer(Stage.owls[0], takesSeat: true)
        #expect(stage.host.guest == Stage.owls[0] && stage.host.table.watcherCount == 3)
        #expect(stage.visitors[Stage.owls[0]]?.isSeated == true && stage.isOneTable)
        // People see the player of the seat in the colour of the host that left, and the same turn.
        #expect(stage.host.table.shown.game == before.game)
        try stage.move("g")
        #expect(stage.letters == letters + "g" && stage.isOneTable)
    }

    @Test("The next guest takes over from the next host, and people see the first colours again")
    func again() throws {
        var stage = try Stage("dd")
        try #require(try stage.loseHost())
        stage.carryOut(stage.host.offerSeat())
        stage.answer(Stage.owls[0], takesSeat: true)
        try stage.move("e")
        #expect(try stage.loseHost())
        #expect(stage.hostID == Stage.owls[0] && stage.host.table.hostDisc == .red && stage.isOneTable)
        stage.carryOut(stage.host.offerSeat())
        stage.answer(Stage.owls[1], takesSeat: true)
        try stage.move("e")
        #expect(stage.letters == "ddee" && stage.isOneTable)
    }

    @Test(
        "A last move of the host that only one watcher saw is not lost, whenever that watcher comes",
        arguments: 0..<4, [false, true])
    func lastMove(_ watcher: Int, _ comesLast: Bool) throws {
        var stage = try Stage("dd")
        let owl = Stage.owls[watcher]
        stage.unreached = Set(stage.visitors.keys).subtracting([owl])
        try stage.move("e")
        let others = Stage.owls.filter { $0 != owl }
        try #require(try stage.loseHost(comesLast ? others + [owl] : [owl] + others))
        #expect(stage.letters == "dde" && stage.isOneTable)
        #expect(stage.host.table.shown.game?.turn == .yellow)
    }

    @Test(
        "A last move that won the game for the host that left, or its resignation, counts",
        arguments: [true, false])
    func lastEnding(_ wins: Bool) throws {
        var stage = try Stage("ababab")
        stage.unreached = Set(stage.visitors.keys).subtracting([Stage.owls[2]])
        if wins { try stage.move("a") } else { try stage.act(.resign, by: .red) }
        try #require(try stage.loseHost())
        #expect(stage.host.table.shown.game?.ending == (wins ? .line(.red) : .resigned(.red)))
        #expect(!stage.host.table.isWaiting && stage.isOneTable)
        // Whoever takes the seat begins another game.
        stage.carryOut(stage.host.offerSeat())
        stage.answer(Stage.owls[0], takesSeat: true)
        #expect(stage.host.table.game?.number == 2 && stage.host.table.isPlaying && stage.isOneTable)
        #expect(stage.visitors[Stage.owls[0]]?.isSeated == true)
    }

    @Test("A table goes on between games, too")
    func betweenGames() throws {
        var stage = try Stage("abababa")
        try #require(try stage.loseHost())
        #expect(stage.host.table.shown.game?.ending == .line(.red) && stage.isOneTable)
        stage.carryOut(stage.host.offerSeat())
        stage.answer(Stage.owls[0], takesSeat: true)
        // The host moves first, as at any table.
        #expect(stage.host.table.game?.turn == .red && stage.host.table.shown.game?.turn == .yellow)
        try stage.move("d")
        #expect(stage.isOneTable)
    }

    @Test("A move of the guest that was under way counts once", arguments: [true, false])
    func underWay(_ hostHeard: Bool) throws {
        var stage = try Stage("d")
        stage.hostHears = hostHeard
        stage.unreached = [Stage.lynx]
        try stage.move("e")
        // The host has answered with a move that the guest has not seen either.
        if hostHeard { try stage.move("f") }
        try #require(try stage.loseHost())
        #expect(stage.letters == (hostHeard ? "def" : "de") && stage.isOneTable)
    }

    @Test("A watcher cannot make up a move of the guest, a second move, or another game")
    func madeUp() throws {
        var stage = try Stage("dd")
        let game = try #require(stage.host.table.game)
        try #require(try stage.loseHost())
        func lost(_ letters: String, from host: PeerID = Stage.puma, number: UInt32 = 1) throws -> LostTable {
            var longer = Game(number: number, starter: .red)
            for letter in letters { try longer.play(column(String(letter)), by: try #require(longer.turn)) }
            return LostTable(host: host, game: longer)
        }
        #expect(stage.host.adopt(LostTable(host: Stage.puma, game: game)).isEmpty)
        for one in try [
            lost("de"), lost("ddg", from: Stage.owls[0]), lost("ddg", number: 2), lost("d"), lost("ggggg"),
        ] { #expect(stage.host.adopt(one).isEmpty) }
        let outputs = stage.host.adopt(try lost("ddef"))
        stage.carryOut(outputs)
        #expect(stage.letters == "dde", "the move of the host that left, and not the guest's own")
        #expect(stage.host.adopt(try lost("ddefg")).isEmpty)
        // Once somebody plays on, the list is what they play.
        stage.carryOut(stage.host.offerSeat())
        stage.answer(Stage.owls[0], takesSeat: true)
        try stage.move("a")
        #expect(stage.host.adopt(try lost("ddeab")).isEmpty)
    }

    @Test(
        "The seat is offered in the order in which the watchers came, whatever the order in which they follow"
    )
    func order() throws {
        var stage = try Stage("dd")
        try #require(try stage.loseHost(Stage.owls.reversed()))
        for (index, owl) in Stage.owls.enumerated() {
            #expect(stage.host.isSeatReserved)
            if index == 0 { stage.carryOut(stage.host.offerSeat()) }
            #expect(Stage.owls.filter { stage.visitors[$0]?.isSeatOffered == true } == [owl])
            if index == 1 {
                stage.visitors[owl] = nil
                stage.carryOut(stage.host.remove(owl))
            } else {
                stage.answer(owl, takesSeat: false)
            }
        }
        #expect(!stage.host.isSeatReserved && stage.host.hasOpenSeat)
        // Nobody may take what is no longer offered.
        stage.carryOut(stage.host.received(TableMessage.answer(takesSeat: true).bytes, from: Stage.owls[0]))
        #expect(stage.host.guest == nil)
    }

    @Test("Of two who accept, the first gets the seat")
    func twoAccept() throws {
        var stage = try Stage("dd")
        try #require(try stage.loseHost())
        for _ in 0..<2 { stage.carryOut(stage.host.offerSeat()) }
        stage.answer(Stage.owls[1], takesSeat: true)
        stage.answer(Stage.owls[0], takesSeat: true)
        #expect(stage.host.guest == Stage.owls[1] && stage.isOneTable)
        #expect(Stage.owls.filter { stage.visitors[$0]?.isSeated == true } == [Stage.owls[1]])
    }

    @Test("The host that left may sit down again, and plays on in its colour")
    func hostReturns() throws {
        var stage = try Stage("dd")
        try #require(try stage.loseHost())
        stage.carryOut(stage.host.offerSeat())
        stage.seat(Stage.puma, try Stage.name(Stage.puma))
        #expect(stage.visitors[Stage.puma]?.isSeated == true && stage.isOneTable)
        #expect(stage.visitors[Stage.owls[0]]?.isSeatOffered == false)
        #expect(stage.news[Stage.puma] == [.joined(seated: true), .resumed(try Stage.name(Stage.puma))])
        try stage.move("e")
        #expect(stage.letters == "dde" && stage.host.table.shown.game?.turn == .yellow)
    }

    @Test("Without a guest or a watcher that can stay, nobody takes over")
    func nothingToTakeOver() throws {
        var noGuest = try Stage("dd")
        noGuest.visitors[Stage.lynx] = nil
        noGuest.carryOut(noGuest.host.remove(Stage.lynx))
        #expect(try !noGuest.loseHost())
        var alone = try Stage("dd", watchers: 0)
        #expect(try !alone.loseHost())
        var gone = try Stage("dd", watchers: 1)
        gone.visitors[Stage.owls[0]] = nil
        gone.carryOut(gone.host.remove(Stage.owls[0]))
        #expect(try !gone.loseHost())
    }

    @Test("Visitors of older programs get no message that they do not know, and are not followed")
    func olderPrograms() throws {
        var oldGuest = try Stage("dd", canStay: false)
        #expect(try !oldGuest.loseHost())
        var oldWatcher = try Stage("dd", watchers: 0)
        try oldWatcher.watch(Stage.owls[0], canStay: false)
        #expect(try !oldWatcher.loseHost())
        // Kinds 1 and 2 and happenings 1 to 8 are all that an older program knows.
        var host = HostTable()
        var outputs = host.seat(Stage.lynx, name: try Stage.name(Stage.lynx), canStay: true)
        outputs += host.watch(Stage.owls[0]) ?? []
        outputs += host.watch(Stage.owls[1], stayingAs: try Stage.name(Stage.owls[1])) ?? []
        for case .send(let bytes, let peers) in outputs where peers.contains(Stage.owls[0]) {
            #expect(bytes[1] <= 2)
        }
        #expect(outputs.contains { if case .send(let bytes, _) = $0 { bytes[1] == 4 } else { false } })
    }

    @Test("A host cannot seat a watcher that did not accept, or offer a seat that is taken")
    func lyingHost() throws {
        let stage = try Stage("dd", watchers: 1)
        for (note, breach) in [
            (TableMessage.SeatNote.given, Breach.falseReport), (.offered, .untimely),
        ] {
            var owl = try #require(stage.visitors[Stage.owls[0]])
            #expect(owl.received(TableMessage.seat(note).bytes) == [.leave(breach)])
        }
    }
}
