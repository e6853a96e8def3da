import Testing

@testable import FourInARow

/// Tests how a guest handles a host that reports impossible things other than moves.
struct LyingHostTests {
    private typealias Room = TableRoom

    private static func words(_ text: String) throws -> Words { try TableMessageTests.words(text) }

    /// Sends this to the guest as the next thing that happened at the table.
    private static func tell(_ happening: Table.Happening, _ room: inout TableRoom) throws {
        let count = try #require(room.guest?.table?.happeningCount)
        room.toGuest = [TableMessage.happened(number: count + 1, happening).bytes]
        room.letOneThrough(toHost: false)
    }

    @Test("Nobody puts words into a guest's mouth")
    func wordsNotSaid() throws {
        var room = try Room.playing("d")
        try room.act(.say(Self.words("hello")), by: .yellow)
        room.settle()
        #expect(room.guestNews.last == .said(.yellow, try Self.words("hello")))
        // Said once, the words may not be reported twice.
        try Self.tell(.said(.yellow, Self.words("hello")), &room)
        #expect(room.guestNews.last == .ended(.brokenOff(.red, .falseReport)))
    }

    @Test("A guest that sits there is not believed to have left")
    func notGone() throws {
        var room = try Room.playing("d")
        try Self.tell(.left, &room)
        #expect(room.guestNews.last == .ended(.brokenOff(.red, .falseReport)))
        #expect(room.guest?.table?.guest != nil)
    }

    @Test("A guest sits down to a new game, not to one that others began")
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
            #expect(watcher.received(seen) == [.tell(.cameIn(seated: false))])
        }
    }

    @Test("After a protest the game is not believed, but words are heard and watchers counted")
    func talkingAfterProtest() throws {
        var room = try Room.playing("d")
        room.toGuest = [[]]
        room.letOneThrough(toHost: false)
        // The host did one more thing before it received the protest. The guest counts the unreadable message under that number.
        try room.act(.say(Self.words("lost")), by: .red)
        room.toGuest = []
        try room.watch(Room.peer(2))
        try room.act(.say(Self.words("what is it?")), by: .red)
        try room.act(.say(Self.words("nonsense")), by: .yellow)
        room.settle()
        let heard: [TableNews] = [
            .said(.red, try Self.words("what is it?")), .said(.yellow, try Self.words("nonsense")),
        ]
        #expect(Array(room.guestNews.suffix(2)) == heard)
        #expect(room.guest?.table?.watcherCount == 1)
        #expect(room.guestNews.count { if case .ended = $0 { true } else { false } } == 1)
        try room.act(.rematch, by: .yellow)
        room.settle()
        #expect(room.isOneTable)
    }

    @Test("When no game is on there is none to break off: the guest leaves")
    func lieBetweenGames() throws {
        var room = try Room.playing("abababa")
        room.toGuest = [[]]
        room.letOneThrough(toHost: false)
        #expect(room.leavings == [.garbage])
        #expect(room.toHost.isEmpty)
        var other = try Room.playing("abababa")
        try Self.tell(.brokenOff(.yellow, .garbage), &other)
        #expect(other.leavings == [.untimely])
    }

    @Test("A guest that nobody answers keeps so many words, and says no more")
    func unheard() throws {
        var room = try Room.playing()
        for _ in 0..<VisitorTable.unheardLimit { try room.act(.say(Self.words("anybody?")), by: .yellow) }
        #expect(throws: Breach.outOfTurn) { try room.act(.say(Self.words("anybody?")), by: .yellow) }
        room.settle()
        #expect(throws: Never.self) { try room.act(.say(Self.words("at last")), by: .yellow) }
        room.settle()
        #expect(room.isOneTable)
    }
}
