import Testing

@testable import FourInARow

struct TableMessageTests {
    private static func tables() throws -> [Table] {
        var tables = [Table()]
        var table = Table()
        try table.apply(.watched(by: 300))
        tables.append(table)
        try table.apply(.sat(words("Puma")))
        tables.append(table)
        for letter in "abababa" {
            let move = Action.move(try column(String(letter)))
            try table.apply(table.event(of: move, by: try #require(table.game?.turn)))
            tables.append(table)
        }
        try table.apply(.rematch(.yellow))
        tables.append(table)
        for ending in [Table.Event.resigned(.red), .brokenOff(.yellow, .falseClaim), .left] {
            var ended = table
            try ended.apply(ending)
            tables.append(ended)
        }
        return tables
    }

    private static func all() throws -> [TableMessage] {
        var all: [TableMessage] = try tables().flatMap { table in
            [.welcome(table, seated: false)] + (table.guest == nil ? [] : [.welcome(table, seated: true)])
        }
        let events: [Table.Event] = [
            .moved(.red, try column("a"), .goesOn), .moved(.yellow, try column("g"), .line),
            .resigned(.red), .rematch(.yellow), .said(.red, try words("Good game – ça va?")),
            .sat(try words("Lynx")), .left, .brokenOff(.yellow, .outOfTurn), .watched(by: 65_535),
            .resumed(try words("Owl")),
        ]
        all += events.map { .happened(number: 0xDEAD_BEEF, $0) }
        let actions: [Action] = [
            .move(try column("d")), .resign, .rematch, .say(try words("x")),
        ]
        all += actions.map { .request(.init(after: 7, game: 258, action: $0, claim: .goesOn)) }
        all.append(.request(.init(after: 1, game: 2, action: .move(try column("b")), claim: .draw)))
        all += Breach.allCases.map { .protest($0) }
        all += [.seat(.offered), .seat(.given), .answer(takesSeat: true), .answer(takesSeat: false)]
        let peers = (1...3).map { TableSimulation.peer($0) }
        all += [
            .people(TablePeople()), .people(TablePeople(guest: peers[0], watchers: Array(peers[1...]))),
        ]
        for disc in Disc.allCases {
            var waiting = Table()
            waiting.game = Game(number: 3, starter: .yellow)
            waiting.hostDisc = disc
            all.append(.continued(waiting, seated: false))
            waiting.guest = try words("Owl")
            all.append(.continued(waiting, seated: true))
        }
        return all
    }

    @Test func `A message is read as it was written, and refused if it is cut short or continued`() throws {
        for message in try Self.all() {
            let bytes = message.bytes
            #expect(try TableMessage(bytes) == message)
            for count in 0..<bytes.count {
                #expect(throws: Breach.garbage) { try TableMessage(Array(bytes[..<count])) }
            }
            #expect(throws: Breach.garbage) { try TableMessage(bytes + [0]) }
        }
    }

    /// `ProtocolPageTests` has the bytes of all others.
    @Test func `The bytes of messages without an example are those on the protocol's page`() throws {
        #expect(TableMessage.protest(.falseReport).bytes == [1, 17, 6])
        #expect(JoinRequest(.watch).bytes == [1, 2, 1])
        let peer = TableSimulation.peer(7)
        let following = JoinRequest(.watch, lostTable: LostTable(host: peer, game: try game("c")))
        #expect(following.bytes == [1, 2, 2] + peer.bytes + [0, 0, 0, 1, 0, 0, 1, 2])
        #expect(
            TableMessage.people(TablePeople(guest: peer, watchers: [peer])).bytes
                == [1, 4, 1] + peer.bytes + [1] + peer.bytes)
        #expect(TableMessage.seat(.given).bytes == [1, 5, 2])
        #expect(TableMessage.answer(takesSeat: true).bytes == [1, 18, 1])
    }

    @Test func `What follows the role may be anything of a later version, unless it shows a lost table`()
        throws
    {
        #expect(try JoinRequest([1, 2]) == JoinRequest(.watch, canStay: false))
        #expect(try JoinRequest([1, 1, 1, 9, 9]) == JoinRequest(.seat))
        #expect(try JoinRequest([1, 1, 77]) == JoinRequest(.seat, canStay: false))
        #expect(throws: TableRole.Fault.garbage) { try JoinRequest([1, 2, 2, 3]) }
    }

    @Test func `A board or a table that no game reaches is refused`() throws {
        let head: [UInt8] = [1, 1, 0, 0, 0, 9, 0, 0, 0, 2, 0x41, 0x6C, 1, 0, 0, 0, 1, 0]
        let line: [UInt8] = [7, 0, 1, 0, 1, 0, 1, 0]
        for impossible: [UInt8] in [
            // Seven discs in one column; a column that does not exist; a move after the end; too many moves.
            head + [0, 7, 0, 0, 0, 0, 0, 0, 0], head + [0, 1, 7], head + [0, 8, 0, 1, 0, 1, 0, 1, 0, 1],
            head + [0, 200],
            // Resigned after a line; a seat without a game; a running game without a guest.
            head + [1, 0] + line, [1, 1, 0, 0, 0, 9, 1, 0, 0, 2, 0x41, 0x6C, 0],
            [1, 1, 0, 0, 0, 9, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],
        ] { #expect(throws: Breach.garbage) { try TableMessage(impossible) } }
        #expect(throws: Never.self) { try TableMessage(head + [0] + line) }
    }

    /// Given as scalars, so that a report of this test does not control a terminal.
    static let steering: [[UInt32]] = [
        [], [0x61, 0x0A, 0x62], [0x1B, 0x5B, 0x32, 0x4A], [0x202E, 0x65], [0x9B, 0x31, 0x6D], [0x61, 0],
    ]

    @Test(arguments: steering)
    func `Words with line ends or control characters are refused`(_ scalars: [UInt32]) {
        let text = String(String.UnicodeScalarView(scalars.compactMap { Unicode.Scalar($0) }))
        #expect(SafeText(text) == nil)
        #expect(throws: Breach.garbage) { try Self.read(Array(text.utf8)) }
    }

    @Test func `Bytes that are not UTF-8 are not text`() {
        #expect(throws: Breach.garbage) { try Self.read([0xC3, 0x28]) }
    }

    /// Reads a message that says this text.
    private static func read(_ text: [UInt8]) throws -> TableMessage {
        try TableMessage([1, 2, 0, 0, 0, 1, 4, 0, UInt8(text.count)] + text)
    }

    @Test func `A name that is too long or has invalid characters is shortened`() throws {
        #expect(SafeText(fitting: "\u{1B}[31mPuma\n")?.description == "[31mPuma")
        #expect(SafeText(fitting: "\n") == nil)
        let long = try #require(SafeText(fitting: String(repeating: "é", count: 150)))
        #expect(long.description.utf8.count == SafeText.byteLimit)
        #expect(SafeText(String(repeating: "é", count: 101)) == nil)
        #expect(SafeText("👩‍👩‍👧‍👦 family")?.description == "👩‍👩‍👧‍👦 family")
    }
}
