import Testing

@testable import FourInARow

/// Tests how a guest handles a host that reports impossible things other than moves.
struct LyingHostTests {
    private static func words(_ text: String) throws -> Words { try TableMessageTests.words(text) }

    /// Sends this to the guest as the next thing that happened at the table.
    private static func report(_ happening: Table.Happening, _ simulation: inout TableSimulation) throws {
        let count = try #require(simulation.guest?.table?.happeningCount)
        simulation.toGuest = [TableMessage.happened(number: count + 1, happening).bytes]
        simulation.deliverOne(toHost: false)
    }

    @Test("A host cannot report words that the guest did not say")
    func wordsNotSaid() throws {
        var simulation = try TableSimulation.playing("d")
        try simulation.act(.say(Self.words("hello")), by: .yellow)
        simulation.deliverAll()
        #expect(simulation.guestNews.last == .said(.yellow, try Self.words("hello")))
        // Said once, the words may not be reported twice.
        try Self.report(.said(.yellow, Self.words("hello")), &simulation)
        #expect(simulation.guestNews.last == .ended(.brokenOff(.red, .falseReport)))
    }

    @Test("A guest does not accept a report that it has left")
    func notGone() throws {
        var simulation = try TableSimulation.playing("d")
        try Self.report(.left, &simulation)
        #expect(simulation.guestNews.last == .ended(.brokenOff(.red, .falseReport)))
        #expect(simulation.guest?.table?.guest != nil)
    }

    @Test("A guest accepts a seat only in a new game")
    func seatedInTheMiddle() throws {
        var table = Table()
        try table.apply(.sat(Self.words("Lynx")))
        var begun = table
        try begun.apply(.moved(.red, column("d"), .goesOn))
        var over = table
        try over.apply(.resigned(.yellow))
        var moreThanSat = Table()
        try moreThanSat.apply(.sat(Self.words("Lynx")))
        moreThanSat.game = Game(number: 2, starter: .yellow)
        for welcome in [begun, over, moreThanSat] {
            var guest = VisitorTable()
            let bytes = TableMessage.welcome(welcome, seated: true).bytes
            #expect(guest.received(bytes) == [.leave(.falseReport)])
            #expect(guest.table == nil)
            // A watcher may come at any time.
            var watcher = VisitorTable()
            let seen = TableMessage.welcome(welcome, seated: false).bytes
            #expect(watcher.received(seen) == [.show(.joined(seated: false))])
        }
    }

    @Test("After a protest the guest ignores the game, but still receives words and counts watchers")
    func talkingAfterProtest() throws {
        var simulation = try TableSimulation.playing("d")
        simulation.toGuest = [[]]
        simulation.deliverOne(toHost: false)
        // The host did one more thing before it received the protest. The guest counts the unreadable message under
        // that number.
        try simulation.act(.say(Self.words("lost")), by: .red)
        simulation.toGuest = []
        try simulation.watch(TableSimulation.peer(2))
        try simulation.act(.say(Self.words("what is it?")), by: .red)
        try simulation.act(.say(Self.words("nonsense")), by: .yellow)
        simulation.deliverAll()
        let heard: [TableNews] = [
            .said(.red, try Self.words("what is it?")), .said(.yellow, try Self.words("nonsense")),
        ]
        #expect(Array(simulation.guestNews.suffix(2)) == heard)
        #expect(simulation.guest?.table?.watcherCount == 1)
        #expect(simulation.guestNews.count { if case .ended = $0 { true } else { false } } == 1)
        try simulation.act(.rematch, by: .yellow)
        simulation.deliverAll()
        #expect(simulation.isOneTable)
    }

    @Test("Between games there is no game to break off, so the guest leaves")
    func lieBetweenGames() throws {
        var simulation = try TableSimulation.playing("abababa")
        simulation.toGuest = [[]]
        simulation.deliverOne(toHost: false)
        #expect(simulation.leavings == [.garbage])
        #expect(simulation.toHost.isEmpty)
        var other = try TableSimulation.playing("abababa")
        try Self.report(.brokenOff(.yellow, .garbage), &other)
        #expect(other.leavings == [.untimely])
    }

    @Test("A guest without answers keeps a limited number of words, and then refuses more")
    func unheard() throws {
        var simulation = try TableSimulation.playing()
        for _ in 0..<VisitorTable.unconfirmedLimit {
            try simulation.act(.say(Self.words("anybody?")), by: .yellow)
        }
        #expect(throws: Breach.outOfTurn) { try simulation.act(.say(Self.words("anybody?")), by: .yellow) }
        simulation.deliverAll()
        #expect(throws: Never.self) { try simulation.act(.say(Self.words("at last")), by: .yellow) }
        simulation.deliverAll()
        #expect(simulation.isOneTable)
    }
}
