import NighCore
import Testing

@testable import FourInARow

/// The tables of a host, a guest and some watchers. Messages between host and guest wait until the test lets them
/// through.
struct TableSimulation {
    static let guestID = peer(1)
    var host = HostTable()
    var guest: VisitorTable?
    var watchers: [PeerID: VisitorTable] = [:]
    var news: [TableNews] = []
    var guestNews: [TableNews] = []
    var toHost: [[UInt8]] = []
    var toGuest: [[UInt8]] = []
    var leavings: [Breach] = []

    static func peer(_ number: UInt8) -> PeerID {
        guard let peer = PeerID(bytes: [UInt8](repeating: number, count: PeerID.byteCount)) else {
            preconditionFailure("no PeerID")
        }
        return peer
    }

    /// A table where a guest has sat down and a game has begun.
    static func playing(_ letters: String = "") throws -> TableSimulation {
        var simulation = TableSimulation()
        simulation.guest = VisitorTable()
        simulation.carryOut(simulation.host.seat(guestID, name: try TableMessageTests.words("Lynx")))
        simulation.deliverAll()
        for letter in letters { try simulation.move(String(letter)) }
        return simulation
    }

    mutating func carryOut(_ outputs: [HostTable.Output]) {
        for output in outputs {
            switch output {
            case .show(let one): news.append(one)
            case .send(let bytes, let peers):
                for peer in peers {
                    if peer == Self.guestID { toGuest.append(bytes) } else { watch(bytes, peer) }
                }
            }
        }
    }

    private mutating func watch(_ bytes: [UInt8], _ peer: PeerID) {
        for output in watchers[peer]?.received(bytes) ?? [] {
            if case .leave(let breach) = output { leavings.append(breach) }
        }
    }

    mutating func carryOut(_ outputs: [VisitorTable.Output]) {
        for output in outputs {
            switch output {
            case .show(let one): guestNews.append(one)
            case .send(let bytes): toHost.append(bytes)
            case .leave(let breach): leavings.append(breach)
            }
        }
    }

    mutating func deliverOne(toHost isToHost: Bool) {
        if isToHost {
            if !toHost.isEmpty { carryOut(host.received(toHost.removeFirst(), from: Self.guestID)) }
        } else if !toGuest.isEmpty {
            let bytes = toGuest.removeFirst()
            if let outputs = guest?.received(bytes) { carryOut(outputs) }
        }
    }

    /// Lets all messages through.
    mutating func deliverAll() {
        while !toHost.isEmpty || !toGuest.isEmpty {
            deliverOne(toHost: true)
            deliverOne(toHost: false)
        }
    }

    mutating func act(_ action: Action, by disc: Disc) throws {
        if disc == .red {
            carryOut(try host.act(action))
        } else if let outputs = try guest?.act(action) {
            carryOut(outputs)
        }
    }

    /// Makes the side whose turn it is move, and lets all messages through.
    mutating func move(_ letter: String) throws {
        let disc = try #require(host.table.game?.turn)
        try act(.move(try column(letter)), by: disc)
        deliverAll()
    }

    /// Adds a watcher.
    mutating func watch(_ peer: PeerID) throws {
        let outputs = host.watch(peer)
        watchers[peer] = VisitorTable()
        carryOut(try #require(outputs))
    }

    var isOneTable: Bool {
        guest?.table == host.table && watchers.values.allSatisfy { $0.table == host.table }
    }
}

struct TableTests {
    @Test("A guest sits down, and the host moves first")
    func sittingDown() throws {
        let simulation = try TableSimulation.playing()
        #expect(simulation.guestNews == [.joined(seated: true), .began(number: 1, starter: .red)])
        #expect(
            simulation.news == [
                .guestJoined(try TableMessageTests.words("Lynx")), .began(number: 1, starter: .red),
            ])
        #expect(simulation.isOneTable)
        #expect(!simulation.host.hasFreeSeat)
        #expect(simulation.guest?.table?.game?.turn == .red)
    }

    @Test("Every move is on both boards, and the last one ends the game for both")
    func wholeGame() throws {
        var simulation = try TableSimulation.playing()
        for letter in "abababa" {
            try simulation.move(String(letter))
            #expect(simulation.isOneTable)
        }
        #expect(simulation.news.last == .ended(.line(.red)))
        #expect(simulation.guestNews.last == .ended(.line(.red)))
        #expect(throws: Breach.untimely) { try simulation.act(.move(column("c")), by: .yellow) }
    }

    @Test("A guest's move counts once the host confirms it, and only one is pending")
    func pending() throws {
        var simulation = try TableSimulation.playing("d")
        try simulation.act(.move(try column("e")), by: .yellow)
        #expect(simulation.guest?.pending == .move(try column("e")))
        #expect(simulation.guest?.table?.game?.moves.count == 1)
        #expect(throws: Breach.outOfTurn) { try simulation.act(.move(column("e")), by: .yellow) }
        simulation.deliverAll()
        #expect(simulation.guest?.pending == nil)
        #expect(simulation.isOneTable)
    }

    @Test("A player cannot do what the rules forbid, and no message is sent")
    func ownMistakes() throws {
        var simulation = try TableSimulation.playing()
        #expect(throws: Breach.outOfTurn) { try simulation.act(.move(column("a")), by: .yellow) }
        #expect(throws: Breach.untimely) { try simulation.act(.rematch, by: .red) }
        #expect(simulation.toHost.isEmpty && simulation.toGuest.isEmpty)
        var alone = HostTable()
        #expect(throws: Breach.untimely) { try alone.act(.move(column("a"))) }
        #expect(throws: Breach.untimely) { try alone.act(.say(TableMessageTests.words("hello?"))) }
    }

    @Test("The player who asks for the rematch moves first", arguments: Disc.allCases)
    func rematch(_ disc: Disc) throws {
        var simulation = try TableSimulation.playing("abababa")
        try simulation.act(.rematch, by: disc)
        simulation.deliverAll()
        #expect(simulation.host.table.game == Game(number: 2, starter: disc))
        #expect(simulation.isOneTable)
    }

    @Test("If both ask for a rematch at once, there is one, and the host moves first")
    func rematchAtOnce() throws {
        var simulation = try TableSimulation.playing("abababa")
        try simulation.act(.rematch, by: .yellow)
        try simulation.act(.rematch, by: .red)
        simulation.deliverAll()
        #expect(simulation.host.table.game == Game(number: 2, starter: .red))
        #expect(simulation.guest?.pending == nil)
        #expect(simulation.isOneTable)
    }

    @Test("Giving up ends the game; if both do so at once, the host's counts", arguments: [true, false])
    func resigning(both: Bool) throws {
        var simulation = try TableSimulation.playing("d")
        try simulation.act(.resign, by: .yellow)
        if both { try simulation.act(.resign, by: .red) }
        simulation.deliverAll()
        #expect(simulation.host.table.game?.ending == .resigned(both ? .red : .yellow))
        #expect(simulation.isOneTable)
        #expect(simulation.guest?.pending == nil)
    }

    /// The guest resigns the first game. Before this reaches the host, the host has resigned too and begun the second
    /// game.
    @Test("An action for one game has no effect in the next")
    func lateResignation() throws {
        var simulation = try TableSimulation.playing("d")
        try simulation.act(.resign, by: .yellow)
        try simulation.act(.resign, by: .red)
        try simulation.act(.rematch, by: .red)
        simulation.deliverAll()
        #expect(simulation.host.table.game == Game(number: 2, starter: .red))
        #expect(simulation.isOneTable)
        #expect(simulation.guest?.pending == nil)
    }

    @Test("All players receive all words, in one order")
    func talking() throws {
        var simulation = try TableSimulation.playing()
        try simulation.act(.say(try TableMessageTests.words("one")), by: .yellow)
        try simulation.act(.say(try TableMessageTests.words("two")), by: .red)
        try simulation.act(.say(try TableMessageTests.words("three")), by: .yellow)
        simulation.deliverAll()
        let said = { (news: [TableNews]) in
            news.compactMap { if case .said(_, let words) = $0 { words.description } else { nil } }
        }
        #expect(said(simulation.news) == ["two", "one", "three"])
        #expect(said(simulation.guestNews) == said(simulation.news))
    }

    @Test("When the guest leaves the game is over, and another player may sit down")
    func guestLeaves() throws {
        var simulation = try TableSimulation.playing("d")
        simulation.carryOut(simulation.host.remove(TableSimulation.guestID))
        #expect(simulation.host.table.game?.ending == .left(.yellow))
        #expect(simulation.news.contains(.guestLeft(try TableMessageTests.words("Lynx"))))
        #expect(simulation.host.hasFreeSeat)
        simulation.guest = VisitorTable()
        simulation.toGuest = []
        simulation.carryOut(
            simulation.host.seat(TableSimulation.guestID, name: try TableMessageTests.words("Lynx again")))
        simulation.deliverAll()
        #expect(simulation.host.table.game == Game(number: 2, starter: .red))
        #expect(simulation.isOneTable)
    }

    // MARK: Watching

    @Test("A watcher sees the whole board at once, and every later move")
    func watching() throws {
        var simulation = try TableSimulation.playing("dd")
        for number: UInt8 in 2...4 {
            try simulation.watch(TableSimulation.peer(number))
            simulation.deliverAll()
            #expect(simulation.isOneTable)
            try simulation.move("d")
            #expect(simulation.isOneTable)
        }
        #expect(simulation.host.table.watcherCount == 3)
        simulation.watchers[TableSimulation.peer(3)] = nil
        simulation.carryOut(simulation.host.remove(TableSimulation.peer(3)))
        simulation.deliverAll()
        #expect(simulation.host.table.watcherCount == 2)
        #expect(simulation.isOneTable)
    }

    @Test("A watcher cannot move, and the host ignores its messages")
    func watchersMoves() throws {
        var simulation = try TableSimulation.playing()
        let watcher = TableSimulation.peer(2)
        try simulation.watch(watcher)
        simulation.deliverAll()
        #expect(throws: Breach.untimely) { try simulation.watchers[watcher]?.act(.move(column("a"))) }
        let before = simulation.host.table
        let request = TableMessage.Request(after: 3, game: 1, action: .resign, claim: .goesOn)
        #expect(simulation.host.received(TableMessage.request(request).bytes, from: watcher).isEmpty)
        #expect(simulation.host.received([0xFF], from: watcher).isEmpty)
        #expect(simulation.host.table == before)
    }

    @Test("The number of watchers is limited")
    func tooManyWatch() {
        var host = HostTable()
        for number in 0..<HostTable.watcherLimit {
            #expect(host.watch(TableSimulation.peer(UInt8(number))) != nil)
        }
        #expect(host.watch(TableSimulation.peer(200)) == nil)
        #expect(host.table.watcherCount == HostTable.watcherLimit)
    }

    // MARK: Breaking the rules

    static let lies: [(String, TableMessage?, Breach)] = [
        ("out of turn", request(.move("a"), after: 1), .outOfTurn),
        ("unreadable", nil, .garbage),
        ("a rematch in the middle", request(.rematch, after: 1), .untimely),
        ("from the future", request(.resign, after: 99), .falseReport),
        ("a host's words", .happened(number: 2, .resigned(.red)), .untimely),
        ("for a game that is none", request(.resign, after: 1, game: 7), .untimely),
    ]

    enum GuestAction { case move(String), rematch, resign }

    private static func request(
        _ guestAction: GuestAction, after: UInt32, game: UInt32 = 1, claim: Claim = .goesOn
    )
        -> TableMessage?
    {
        let action: Action? =
            switch guestAction {
            case .move(let letter): (try? column(letter)).map { .move($0) }
            case .rematch: .rematch
            case .resign: .resign
            }
        return action.map { .request(.init(after: after, game: game, action: $0, claim: claim)) }
    }

    @Test("A guest who breaks the rules ends the game, and both are notified why", arguments: lies.indices)
    func lyingGuest(_ index: Int) throws {
        let (_, message, breach) = Self.lies[index]
        var simulation = try TableSimulation.playing()
        simulation.carryOut(
            simulation.host.received(message?.bytes ?? [9, 9, 9], from: TableSimulation.guestID))
        simulation.deliverAll()
        #expect(simulation.news.last == .ended(.brokenOff(.yellow, breach)))
        #expect(simulation.guestNews.last == .ended(.brokenOff(.yellow, breach)))
        #expect(simulation.isOneTable)
        // Whatever else the guest sends is ignored.
        let count = simulation.news.count
        simulation.carryOut(simulation.host.received([9, 9, 9], from: TableSimulation.guestID))
        #expect(simulation.news.count == count)
        // The next game is not affected.
        try simulation.act(.rematch, by: .yellow)
        simulation.deliverAll()
        try simulation.move("c")
        #expect(simulation.isOneTable)
    }

    @Test("A move into a full column, or with a false claim to win, is not played")
    func lyingMoves() throws {
        for (letters, guestAction, claim, breach) in [
            ("aaaaaa" + "b", GuestAction.move("a"), Claim.goesOn, Breach.columnFull),
            ("d", .move("d"), .line, .falseClaim), ("d", .move("d"), .draw, .falseClaim),
        ] {
            var simulation = try TableSimulation.playing(letters)
            let before = simulation.host.table.game?.board
            let after = simulation.host.table.happeningCount
            let message = try #require(Self.request(guestAction, after: after, claim: claim))
            simulation.carryOut(simulation.host.received(message.bytes, from: TableSimulation.guestID))
            simulation.deliverAll()
            #expect(simulation.news.last == .ended(.brokenOff(.yellow, breach)))
            #expect(simulation.host.table.game?.board == before)
            #expect(simulation.isOneTable)
        }
    }

    @Test("Not claiming a win is also a false claim")
    func unclaimedWin() throws {
        var simulation = try TableSimulation.playing("bacabac")
        let message = try #require(Self.request(.move("a"), after: simulation.host.table.happeningCount))
        simulation.carryOut(simulation.host.received(message.bytes, from: TableSimulation.guestID))
        #expect(simulation.news.last == .ended(.brokenOff(.yellow, .falseClaim)))
    }

    static let hostLies: [([UInt8], Breach)] = {
        let a = Column.allCases[0]
        return [
            (TableMessage.happened(number: 2, .moved(.yellow, a, .goesOn)).bytes, .falseReport),
            (TableMessage.happened(number: 2, .resigned(.yellow)).bytes, .falseReport),
            (TableMessage.happened(number: 2, .moved(.red, a, .line)).bytes, .falseClaim),
            (TableMessage.happened(number: 3, .moved(.red, a, .goesOn)).bytes, .falseReport),
            (TableMessage.happened(number: 2, .rematch(.red)).bytes, .untimely),
            (TableMessage.welcome(Table(), seated: false).bytes, .untimely),
            (TableMessage.protest(.garbage).bytes, .untimely),
            ([], .garbage),
        ]
    }()

    @Test("A host who breaks the rules ends the game, and both are notified why", arguments: hostLies.indices)
    func lyingHost(_ index: Int) throws {
        let (bytes, breach) = Self.hostLies[index]
        var simulation = try TableSimulation.playing()
        simulation.toGuest = [bytes]
        simulation.deliverOne(toHost: false)
        #expect(simulation.guestNews.last == .ended(.brokenOff(.red, breach)))
        simulation.deliverAll()
        #expect(simulation.news.last == .ended(.brokenOff(.red, breach)))
        #expect(simulation.guest?.table?.game?.ending == simulation.host.table.game?.ending)
        #expect(simulation.guest?.table?.game?.board == simulation.host.table.game?.board)
    }

    @Test("A watcher leaves a host that sends nonsense")
    func watchedLies() throws {
        var watcher = VisitorTable()
        #expect(watcher.received([1, 2, 3]) == [.leave(.garbage)])
        var seated = VisitorTable()
        // Nothing can have happened before the visitor was told the state of the table.
        let early = TableMessage.happened(number: 1, .resigned(.red)).bytes
        #expect(seated.received(early) == [.leave(.untimely)])
    }
}
