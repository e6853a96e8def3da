import NighCore
import Testing

@testable import FourInARow

/// The tables of a host, a guest and some watchers. Messages between host and guest wait until the test lets them through.
struct TableRoom {
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
    static func playing(_ letters: String = "") throws -> TableRoom {
        var room = TableRoom()
        room.guest = VisitorTable()
        room.take(room.host.seat(guestID, name: try TableMessageTests.words("Lynx")))
        room.settle()
        for letter in letters { try room.move(String(letter)) }
        return room
    }

    mutating func take(_ outputs: [HostTable.Output]) {
        for output in outputs {
            switch output {
            case .tell(let told): news.append(told)
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

    mutating func take(_ outputs: [VisitorTable.Output]) {
        for output in outputs {
            switch output {
            case .tell(let told): guestNews.append(told)
            case .send(let bytes): toHost.append(bytes)
            case .leave(let breach): leavings.append(breach)
            }
        }
    }

    mutating func letOneThrough(toHost isToHost: Bool) {
        if isToHost {
            if !toHost.isEmpty { take(host.received(toHost.removeFirst(), from: Self.guestID)) }
        } else if !toGuest.isEmpty {
            let bytes = toGuest.removeFirst()
            if let outputs = guest?.received(bytes) { take(outputs) }
        }
    }

    /// Lets all messages through.
    mutating func settle() {
        while !toHost.isEmpty || !toGuest.isEmpty {
            letOneThrough(toHost: true)
            letOneThrough(toHost: false)
        }
    }

    mutating func act(_ action: Action, by disc: Disc) throws {
        if disc == .red {
            take(try host.act(action))
        } else if let outputs = try guest?.act(action) {
            take(outputs)
        }
    }

    /// Makes the side whose turn it is move, and lets all messages through.
    mutating func move(_ letter: String) throws {
        let disc = try #require(host.table.game?.turn)
        try act(.move(try column(letter)), by: disc)
        settle()
    }

    /// Adds a watcher.
    mutating func watch(_ peer: PeerID) throws {
        let outputs = host.watch(peer)
        watchers[peer] = VisitorTable()
        take(try #require(outputs))
    }

    var isOneTable: Bool {
        guest?.table == host.table && watchers.values.allSatisfy { $0.table == host.table }
    }
}

struct TableTests {
    private typealias Room = TableRoom

    @Test("A guest sits down, and the host moves first")
    func sitting() throws {
        let room = try Room.playing()
        #expect(room.guestNews == [.cameIn(seated: true), .began(number: 1, starter: .red)])
        #expect(
            room.news == [.guestCame(try TableMessageTests.words("Lynx")), .began(number: 1, starter: .red)])
        #expect(room.isOneTable)
        #expect(!room.host.hasFreeSeat)
        #expect(room.guest?.table?.game?.turn == .red)
    }

    @Test("Every move is on both boards, and the last one ends the game for both")
    func wholeGame() throws {
        var room = try Room.playing()
        for letter in "abababa" {
            try room.move(String(letter))
            #expect(room.isOneTable)
        }
        #expect(room.news.last == .ended(.line(.red)))
        #expect(room.guestNews.last == .ended(.line(.red)))
        #expect(throws: Breach.untimely) { try room.act(.move(column("c")), by: .yellow) }
    }

    @Test("A guest's move is done when the host says so, and only one is under way")
    func pending() throws {
        var room = try Room.playing("d")
        try room.act(.move(try column("e")), by: .yellow)
        #expect(room.guest?.pending == .move(try column("e")))
        #expect(room.guest?.table?.game?.moves.count == 1)
        #expect(throws: Breach.outOfTurn) { try room.act(.move(column("e")), by: .yellow) }
        room.settle()
        #expect(room.guest?.pending == nil)
        #expect(room.isOneTable)
    }

    @Test("One cannot do what one may not do, and nobody hears of it")
    func ownMistakes() throws {
        var room = try Room.playing()
        #expect(throws: Breach.outOfTurn) { try room.act(.move(column("a")), by: .yellow) }
        #expect(throws: Breach.untimely) { try room.act(.rematch, by: .red) }
        #expect(room.toHost.isEmpty && room.toGuest.isEmpty)
        var alone = HostTable()
        #expect(throws: Breach.untimely) { try alone.act(.move(column("a"))) }
        #expect(throws: Breach.untimely) { try alone.act(.say(TableMessageTests.words("hello?"))) }
    }

    @Test("Whoever asks for the rematch moves first", arguments: Disc.allCases)
    func rematch(_ disc: Disc) throws {
        var room = try Room.playing("abababa")
        try room.act(.rematch, by: disc)
        room.settle()
        #expect(room.host.table.game == Game(number: 2, starter: disc))
        #expect(room.isOneTable)
    }

    @Test("When both ask for it at once there is one rematch, and the host moves first")
    func rematchAtOnce() throws {
        var room = try Room.playing("abababa")
        try room.act(.rematch, by: .yellow)
        try room.act(.rematch, by: .red)
        room.settle()
        #expect(room.host.table.game == Game(number: 2, starter: .red))
        #expect(room.guest?.pending == nil)
        #expect(room.isOneTable)
    }

    @Test("Giving up ends the game; when both do at once, the host's counts", arguments: [true, false])
    func resigning(both: Bool) throws {
        var room = try Room.playing("d")
        try room.act(.resign, by: .yellow)
        if both { try room.act(.resign, by: .red) }
        room.settle()
        #expect(room.host.table.game?.ending == .resigned(both ? .red : .yellow))
        #expect(room.isOneTable)
        #expect(room.guest?.pending == nil)
    }

    /// The guest resigns the first game. Before this reaches the host, the host has resigned too and begun the second game.
    @Test("What was meant for one game is not done in the next")
    func lateResignation() throws {
        var room = try Room.playing("d")
        try room.act(.resign, by: .yellow)
        try room.act(.resign, by: .red)
        try room.act(.rematch, by: .red)
        room.settle()
        #expect(room.host.table.game == Game(number: 2, starter: .red))
        #expect(room.isOneTable)
        #expect(room.guest?.pending == nil)
    }

    @Test("What is said is heard by all, in one order")
    func talking() throws {
        var room = try Room.playing()
        try room.act(.say(try TableMessageTests.words("one")), by: .yellow)
        try room.act(.say(try TableMessageTests.words("two")), by: .red)
        try room.act(.say(try TableMessageTests.words("three")), by: .yellow)
        room.settle()
        let said = { (news: [TableNews]) in
            news.compactMap { if case .said(_, let words) = $0 { words.description } else { nil } }
        }
        #expect(said(room.news) == ["two", "one", "three"])
        #expect(said(room.guestNews) == said(room.news))
    }

    @Test("When the guest is gone the game is over, and somebody else may sit down")
    func guestLeaves() throws {
        var room = try Room.playing("d")
        room.take(room.host.gone(Room.guestID))
        #expect(room.host.table.game?.ending == .left(.yellow))
        #expect(room.news.contains(.guestLeft(try TableMessageTests.words("Lynx"))))
        #expect(room.host.hasFreeSeat)
        room.guest = VisitorTable()
        room.toGuest = []
        room.take(room.host.seat(Room.guestID, name: try TableMessageTests.words("Lynx again")))
        room.settle()
        #expect(room.host.table.game == Game(number: 2, starter: .red))
        #expect(room.isOneTable)
    }

    // MARK: Watching

    @Test("Whoever watches sees the whole board on coming in, and every move from then on")
    func watching() throws {
        var room = try Room.playing("dd")
        for number: UInt8 in 2...4 {
            try room.watch(Room.peer(number))
            room.settle()
            #expect(room.isOneTable)
            try room.move("d")
            #expect(room.isOneTable)
        }
        #expect(room.host.table.watcherCount == 3)
        room.watchers[Room.peer(3)] = nil
        room.take(room.host.gone(Room.peer(3)))
        room.settle()
        #expect(room.host.table.watcherCount == 2)
        #expect(room.isOneTable)
    }

    @Test("Whoever watches cannot move, and is not listened to")
    func watchersMoves() throws {
        var room = try Room.playing()
        let watcher = Room.peer(2)
        try room.watch(watcher)
        room.settle()
        #expect(throws: Breach.untimely) { try room.watchers[watcher]?.act(.move(column("a"))) }
        let before = room.host.table
        let request = TableMessage.Request(after: 3, game: 1, action: .resign, claim: .goesOn)
        #expect(room.host.received(TableMessage.request(request).bytes, from: watcher).isEmpty)
        #expect(room.host.received([0xFF], from: watcher).isEmpty)
        #expect(room.host.table == before)
    }

    @Test("Of those who watch there are only so many")
    func tooManyWatch() {
        var host = HostTable()
        for number in 0..<HostTable.watcherLimit { #expect(host.watch(Room.peer(UInt8(number))) != nil) }
        #expect(host.watch(Room.peer(200)) == nil)
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

    enum Wish { case move(String), rematch, resign }

    private static func request(_ wish: Wish, after: UInt32, game: UInt32 = 1, claim: Claim = .goesOn)
        -> TableMessage?
    {
        let action: Action? =
            switch wish {
            case .move(let letter): (try? column(letter)).map { .move($0) }
            case .rematch: .rematch
            case .resign: .resign
            }
        return action.map { .request(.init(after: after, game: game, action: $0, claim: claim)) }
    }

    @Test("A guest who breaks the rules ends the game, and both are told how", arguments: lies.indices)
    func lyingGuest(_ index: Int) throws {
        let (_, message, breach) = Self.lies[index]
        var room = try Room.playing()
        room.take(room.host.received(message?.bytes ?? [9, 9, 9], from: Room.guestID))
        room.settle()
        #expect(room.news.last == .ended(.brokenOff(.yellow, breach)))
        #expect(room.guestNews.last == .ended(.brokenOff(.yellow, breach)))
        #expect(room.isOneTable)
        // Whatever else the guest sends is ignored.
        let count = room.news.count
        room.take(room.host.received([9, 9, 9], from: Room.guestID))
        #expect(room.news.count == count)
        // The next game is not affected.
        try room.act(.rematch, by: .yellow)
        room.settle()
        try room.move("c")
        #expect(room.isOneTable)
    }

    @Test("A full column, and a win that is none, are not played")
    func lyingMoves() throws {
        for (letters, wish, claim, breach) in [
            ("aaaaaa" + "b", Wish.move("a"), Claim.goesOn, Breach.columnFull),
            ("d", .move("d"), .line, .falseClaim), ("d", .move("d"), .draw, .falseClaim),
        ] {
            var room = try Room.playing(letters)
            let before = room.host.table.game?.board
            let after = room.host.table.happeningCount
            let message = try #require(Self.request(wish, after: after, claim: claim))
            room.take(room.host.received(message.bytes, from: Room.guestID))
            room.settle()
            #expect(room.news.last == .ended(.brokenOff(.yellow, breach)))
            #expect(room.host.table.game?.board == before)
            #expect(room.isOneTable)
        }
    }

    @Test("A win that is not claimed is a lie too")
    func unclaimedWin() throws {
        var room = try Room.playing("bacabac")
        let message = try #require(Self.request(.move("a"), after: room.host.table.happeningCount))
        room.take(room.host.received(message.bytes, from: Room.guestID))
        #expect(room.news.last == .ended(.brokenOff(.yellow, .falseClaim)))
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

    @Test("A host who breaks the rules ends the game, and both are told how", arguments: hostLies.indices)
    func lyingHost(_ index: Int) throws {
        let (bytes, breach) = Self.hostLies[index]
        var room = try Room.playing()
        room.toGuest = [bytes]
        room.letOneThrough(toHost: false)
        #expect(room.guestNews.last == .ended(.brokenOff(.red, breach)))
        room.settle()
        #expect(room.news.last == .ended(.brokenOff(.red, breach)))
        #expect(room.guest?.table?.game?.ending == room.host.table.game?.ending)
        #expect(room.guest?.table?.game?.board == room.host.table.game?.board)
    }

    @Test("Whoever watches a host that makes no sense leaves")
    func watchedLies() throws {
        var watcher = VisitorTable()
        #expect(watcher.received([1, 2, 3]) == [.leave(.garbage)])
        var seated = VisitorTable()
        // Nothing can have happened before the visitor was told the state of the table.
        let early = TableMessage.happened(number: 1, .resigned(.red)).bytes
        #expect(seated.received(early) == [.leave(.untimely)])
    }
}
