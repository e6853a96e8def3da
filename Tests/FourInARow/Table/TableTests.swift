import NighCore
import Testing

@testable import FourInARow

struct TableTests {
    @Test func `A guest sits down, and the host moves first`() throws {
        let table = try TableSimulation.playing()
        let began = TableNews.began(number: 1, starter: .red)
        #expect(table.guestNews == [.joined(seated: true), began])
        #expect(table.hostNews == [.guestJoined(try words("Lynx")), began])
        #expect(table.isOneTable && !table.host.hasFreeSeat)
        #expect(table.guest?.table?.game?.turn == .red)
    }

    @Test func `Every move is on both boards, and the last one ends the game for both`() throws {
        var table = try TableSimulation.playing()
        for letter in "abababa" {
            try table.move(String(letter))
            #expect(table.isOneTable)
        }
        for news in [table.hostNews, table.guestNews] { #expect(news.last == .ended(.line(.red))) }
        #expect(throws: Breach.untimely) { try table.act(.move(column("c")), by: .yellow) }
    }

    @Test func `A guest's move counts once the host confirms it, and only one is pending`() throws {
        var table = try TableSimulation.playing("d")
        try table.act(.move(try column("e")), by: .yellow)
        #expect(table.guest?.pending == .move(try column("e")))
        #expect(table.guest?.table?.game?.moves.count == 1)
        #expect(throws: Breach.outOfTurn) { try table.act(.move(column("e")), by: .yellow) }
        table.deliverAll()
        #expect(table.guest?.pending == nil && table.isOneTable)
    }

    @Test func `A player cannot do what the rules forbid, and no message is sent`() throws {
        var table = try TableSimulation.playing()
        #expect(throws: Breach.outOfTurn) { try table.act(.move(column("a")), by: .yellow) }
        #expect(throws: Breach.untimely) { try table.act(.rematch, by: .red) }
        #expect(table.toHost.isEmpty && table.toVisitors.values.allSatisfy(\.isEmpty))
        var alone = HostTable()
        for action in [Action.move(try column("a")), .say(try words("hello?"))] {
            #expect(throws: Breach.untimely) { try alone.act(action) }
        }
    }

    /// Actions that cross each other on their way.
    static let crossings: [(String, [(Action, Disc)], game: UInt32, starter: Disc, ending: Game.Ending?)] = [
        // The player who asks for the rematch moves first; if both ask at once, the host does.
        ("abababa", [(.rematch, .red)], 2, .red, nil), ("abababa", [(.rematch, .yellow)], 2, .yellow, nil),
        ("abababa", [(.rematch, .yellow), (.rematch, .red)], 2, .red, nil),
        // If both resign at once, the host's resignation counts.
        ("d", [(.resign, .yellow)], 1, .red, .resigned(.yellow)),
        ("d", [(.resign, .yellow), (.resign, .red)], 1, .red, .resigned(.red)),
        // An action for one game has no effect in the next.
        ("d", [(.resign, .yellow), (.resign, .red), (.rematch, .red)], 2, .red, nil),
    ]

    @Test(arguments: crossings)
    func `Of actions that cross, the host's counts, and each for its own game`(
        _ moves: String, _ actions: [(Action, Disc)], _ number: UInt32, _ starter: Disc,
        _ ending: Game.Ending?
    ) throws {
        var table = try TableSimulation.playing(moves)
        for (action, disc) in actions { try table.act(action, by: disc) }
        table.deliverAll()
        let game = try #require(table.host.table.game)
        #expect(game.number == number && game.starter == starter && game.ending == ending)
        #expect(table.isOneTable && table.guest?.pending == nil)
    }

    @Test func `All players receive all words, in one order`() throws {
        var table = try TableSimulation.playing()
        for (text, disc) in [("one", Disc.yellow), ("two", .red), ("three", .yellow)] {
            try table.act(.say(try words(text)), by: disc)
        }
        table.deliverAll()
        for news in [table.hostNews, table.guestNews] {
            let said = news.compactMap { if case .said(_, let words) = $0 { words.description } else { nil } }
            #expect(said == ["two", "one", "three"])
        }
    }

    @Test func `When the guest leaves the game is over, and another player may sit down`() throws {
        var table = try TableSimulation.playing("d")
        table.leave(TableSimulation.lynx)
        #expect(table.host.table.game?.ending == .left(.yellow))
        #expect(table.hostNews.contains(.guestLeft(try words("Lynx"))))
        #expect(table.host.hasFreeSeat)
        try table.seat(TableSimulation.lynx)
        #expect(table.host.table.game == Game(number: 2, starter: .red))
        #expect(table.isOneTable)
    }

    // MARK: Watching

    @Test func `A watcher sees the whole board at once, and every later move`() throws {
        var table = try TableSimulation.playing("dd")
        for owl in TableSimulation.owls.prefix(3) {
            try table.watch(owl)
            #expect(table.isOneTable)
            try table.move("d")
            #expect(table.isOneTable)
        }
        #expect(table.host.table.watcherCount == 3)
        table.leave(TableSimulation.owls[1])
        #expect(table.host.table.watcherCount == 2 && table.isOneTable)
    }

    @Test func `A watcher cannot move, and the host ignores its messages`() throws {
        var table = try TableSimulation.playing(watchers: 1)
        let owl = TableSimulation.owls[0]
        #expect(throws: Breach.untimely) { try table.visitors[owl]?.act(.move(column("a"))) }
        let before = table.host.table
        let request = TableMessage.Request(after: 3, game: 1, action: .resign, claim: .goesOn)
        for bytes in [TableMessage.request(request).bytes, [0xFF]] {
            #expect(table.host.received(bytes, from: owl).isEmpty)
        }
        #expect(table.host.table == before)
    }

    @Test func `The number of watchers is limited`() {
        var host = HostTable()
        for number in 0..<HostTable.watcherLimit {
            #expect(host.watch(TableSimulation.peer(UInt8(number))) != nil)
        }
        #expect(host.watch(TableSimulation.peer(200)) == nil)
        #expect(host.table.watcherCount == HostTable.watcherLimit)
    }

    // MARK: Guests that break the rules

    private static func request(
        _ action: Action, after: UInt32 = 1, game: UInt32 = 1, claim: Claim = .goesOn
    ) -> [UInt8] {
        TableMessage.request(.init(after: after, game: game, action: action, claim: claim)).bytes
    }

    static let lies: [(moves: String, [UInt8], Breach)] = {
        let (a, d) = (Action.move(Column.allCases[0]), Action.move(Column.allCases[3]))
        return [
            ("", request(a), .outOfTurn), ("", [9, 9, 9], .garbage), ("", request(.rematch), .untimely),
            ("", request(.resign, after: 99), .falseReport),
            ("", TableMessage.happened(number: 2, .resigned(.red)).bytes, .untimely),
            ("", request(.resign, game: 7), .untimely),
            // A move into a full column; false claims to have won or drawn; a line that is not claimed.
            ("aaaaaab", request(a, after: 8), .columnFull),
            ("d", request(d, after: 2, claim: .line), .falseClaim),
            ("d", request(d, after: 2, claim: .draw), .falseClaim),
            ("bacabac", request(a, after: 8), .falseClaim),
        ]
    }()

    @Test(arguments: lies)
    func `A guest who breaks the rules ends the game, and both learn why`(
        _ moves: String, _ bytes: [UInt8], _ breach: Breach
    ) throws {
        var table = try TableSimulation.playing(moves)
        let board = table.host.table.game?.board
        for bytes in [bytes, [9, 9, 9]] {
            table.carryOut(table.host.received(bytes, from: TableSimulation.lynx))
            table.deliverAll()
            // The second message is ignored, like anything else from this guest.
            for news in [table.hostNews, table.guestNews] {
                #expect(news.last == .ended(.brokenOff(.yellow, breach)))
                #expect(news.count { if case .ended = $0 { true } else { false } } == 1)
            }
            #expect(table.host.table.game?.board == board && table.isOneTable)
        }
        // The next game is not affected.
        try table.act(.rematch, by: .yellow)
        table.deliverAll()
        try table.move("c")
        #expect(table.isOneTable)
    }

    // MARK: Hosts that break the rules

    static let hostLies: [([UInt8], Breach)] = {
        let a = Column.allCases[0]
        return [
            (TableMessage.happened(number: 2, .moved(.yellow, a, .goesOn)).bytes, .falseReport),
            (TableMessage.happened(number: 2, .resigned(.yellow)).bytes, .falseReport),
            (TableMessage.happened(number: 2, .moved(.red, a, .line)).bytes, .falseClaim),
            (TableMessage.happened(number: 3, .moved(.red, a, .goesOn)).bytes, .falseReport),
            (TableMessage.happened(number: 2, .rematch(.red)).bytes, .untimely),
            // The guest has not left.
            (TableMessage.happened(number: 2, .left).bytes, .falseReport),
            (TableMessage.welcome(Table(), seated: false).bytes, .untimely),
            (TableMessage.protest(.garbage).bytes, .untimely),
            ([], .garbage),
        ]
    }()

    @Test(arguments: hostLies)
    func `A host who breaks the rules ends the game, and both learn why`(
        _ bytes: [UInt8], _ breach: Breach
    ) throws {
        var table = try TableSimulation.playing()
        table.mislead(bytes)
        #expect(table.guestNews.last == .ended(.brokenOff(.red, breach)))
        #expect(table.guest?.table?.guest != nil)
        table.deliverAll()
        #expect(table.hostNews.last == .ended(.brokenOff(.red, breach)))
        #expect(table.guest?.table?.game == table.host.table.game)
    }

    @Test func `A host cannot report words that the guest did not say`() throws {
        var table = try TableSimulation.playing("d")
        let said = TableNews.said(.yellow, try words("hello"))
        try table.act(.say(words("hello")), by: .yellow)
        table.deliverAll()
        #expect(table.guestNews.last == said)
        // Said once, the words may not be reported twice.
        let count = try #require(table.guest?.table?.eventCount)
        table.mislead(TableMessage.happened(number: count + 1, .said(.yellow, try words("hello"))).bytes)
        #expect(table.guestNews.last == .ended(.brokenOff(.red, .falseReport)))
    }

    @Test func `A guest accepts a seat only in a new game, and a watcher comes at any time`() throws {
        var table = Table()
        try table.apply(.sat(words("Lynx")))
        var (begun, over, another) = (table, table, table)
        try begun.apply(.moved(.red, column("d"), .goesOn))
        try over.apply(.resigned(.yellow))
        another.game = Game(number: 2, starter: .yellow)
        for welcome in [begun, over, another] {
            for (isSeated, output) in [
                (true, VisitorTable.Output.leave(.falseReport)), (false, .show(.joined(seated: false))),
            ] {
                var visitor = VisitorTable()
                let bytes = TableMessage.welcome(welcome, seated: isSeated).bytes
                #expect(visitor.received(bytes) == [output])
                #expect((visitor.table == nil) == isSeated)
            }
        }
    }

    @Test func `After a protest the guest ignores the game, but not words and watchers`() throws {
        var table = try TableSimulation.playing("d")
        table.mislead([])
        // The host did one more thing before it received the protest. The guest counts the unreadable message under
        // that number.
        try table.act(.say(words("lost")), by: .red)
        table.toVisitors = [:]
        try table.watch(TableSimulation.owls[0])
        try table.act(.say(words("what is it?")), by: .red)
        try table.act(.say(words("nonsense")), by: .yellow)
        table.deliverAll()
        let heard: [TableNews] = [
            .said(.red, try words("what is it?")), .said(.yellow, try words("nonsense")),
        ]
        #expect(Array(table.guestNews.suffix(2)) == heard)
        #expect(table.guest?.table?.watcherCount == 1)
        #expect(table.guestNews.count { if case .ended = $0 { true } else { false } } == 1)
        try table.act(.rematch, by: .yellow)
        table.deliverAll()
        #expect(table.isOneTable)
    }

    @Test func `Where there is no game to break off, a visitor leaves`() throws {
        var table = try TableSimulation.playing("abababa")
        table.mislead([])
        #expect(table.leavings == [.garbage] && table.toHost.isEmpty)
        var other = try TableSimulation.playing("abababa")
        let count = try #require(other.guest?.table?.eventCount)
        other.mislead(TableMessage.happened(number: count + 1, .brokenOff(.yellow, .garbage)).bytes)
        #expect(other.leavings == [.untimely])
        // Nothing can have happened before the visitor was told the state of the table.
        let early = TableMessage.happened(number: 1, .resigned(.red)).bytes
        for (bytes, breach) in [([1, 2, 3], Breach.garbage), (early, .untimely)] {
            var watcher = VisitorTable()
            #expect(watcher.received(bytes) == [.leave(breach)])
        }
    }

    @Test func `A guest without answers keeps a limited number of words, and then refuses more`() throws {
        var table = try TableSimulation.playing()
        let say = Action.say(try words("anybody?"))
        for _ in 0..<VisitorTable.unconfirmedLimit { try table.act(say, by: .yellow) }
        #expect(throws: Breach.outOfTurn) { try table.act(say, by: .yellow) }
        table.deliverAll()
        #expect(throws: Never.self) { try table.act(say, by: .yellow) }
        table.deliverAll()
        #expect(table.isOneTable)
    }
}
