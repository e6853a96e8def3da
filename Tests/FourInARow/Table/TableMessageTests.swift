import Testing

@testable import FourInARow

struct TableMessageTests {
    static func words(_ text: String) throws -> Words { try #require(Words(text)) }

    private static func tables() throws -> [Table] {
        var tables = [Table()]
        var table = Table()
        try table.apply(.watched(by: 300))
        tables.append(table)
        try table.apply(.sat(words("Puma")))
        tables.append(table)
        for letter in "abababa" {
            let disc = try #require(table.game?.turn)
            let happening = table.happening(of: .move(try column(String(letter))), by: disc)
            try table.apply(happening)
            tables.append(table)
        }
        try table.apply(.rematch(.yellow))
        tables.append(table)
        for ending in [Table.Happening.resigned(.red), .brokenOff(.yellow, .falseClaim), .left] {
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
        let happenings: [Table.Happening] = [
            .moved(.red, try column("a"), .goesOn), .moved(.yellow, try column("g"), .line),
            .resigned(.red), .rematch(.yellow), .said(.red, try words("Good game – ça va?")),
            .sat(try words("Lynx")), .left, .brokenOff(.yellow, .outOfTurn), .watched(by: 65_535),
            .resumed(try words("Owl")),
        ]
        all += happenings.map { .happened(number: 0xDEAD_BEEF, $0) }
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

    @Test("A message is read as it was written")
    func roundTrip() throws {
        for message in try Self.all() { #expect(try TableMessage(message.bytes) == message) }
    }

    @Test("A message that is cut short or continued is refused")
    func lengths() throws {
        for message in try Self.all() {
            let bytes = message.bytes
            for count in 0..<bytes.count {
                #expect(throws: Breach.garbage) { try TableMessage(Array(bytes[..<count])) }
            }
            #expect(throws: Breach.garbage) { try TableMessage(bytes + [0]) }
        }
    }

    @Test("The bytes are those on the protocol's page")
    func bytes() throws {
        let move = TableMessage.request(
            .init(after: 3, game: 1, action: .move(try column("d")), claim: .line))
        #expect(move.bytes == [1, 16, 0, 0, 0, 3, 0, 0, 0, 1, 1, 3, 1])
        let said = TableMessage.happened(number: 0x0102_0304, .said(.yellow, try Self.words("hé")))
        #expect(said.bytes == [1, 2, 1, 2, 3, 4, 4, 1, 3, 0x68, 0xC3, 0xA9])
        var table = Table()
        try table.apply(.sat(try Self.words("Al")))
        try table.apply(.moved(.red, try column("c"), .goesOn))
        #expect(
            TableMessage.welcome(table, seated: true).bytes
                == [1, 1, 0, 0, 0, 2, 1, 0, 0, 2, 0x41, 0x6C, 1, 0, 0, 0, 1, 0, 0, 1, 2])
        #expect(TableMessage.protest(.falseReport).bytes == [1, 17, 6])
        #expect(TableWish.watch.bytes == [1, 2])
        #expect(JoinRequest(.watch).bytes == [1, 2, 1])
        let peer = TableSimulation.peer(7)
        let following = JoinRequest(
            .watch, lostTable: LostTable(host: peer, game: try #require(table.game)))
        #expect(following.bytes == [1, 2, 2] + peer.bytes + [0, 0, 0, 1, 0, 0, 1, 2])
        #expect(
            TableMessage.people(TablePeople(guest: peer, watchers: [peer])).bytes
                == [1, 4, 1] + peer.bytes + [1] + peer.bytes)
        #expect(TableMessage.seat(.given).bytes == [1, 5, 2])
        #expect(TableMessage.answer(takesSeat: true).bytes == [1, 18, 1])
    }

    @Test("What follows the wish may be anything of a later version, unless it shows a lost table")
    func requests() throws {
        #expect(try JoinRequest([1, 2]) == JoinRequest(.watch, canStay: false))
        #expect(try JoinRequest([1, 1, 1, 9, 9]) == JoinRequest(.seat))
        #expect(try JoinRequest([1, 1, 77]) == JoinRequest(.seat, canStay: false))
        #expect(throws: TableWish.Fault.garbage) { try JoinRequest([1, 2, 2, 3]) }
    }

    @Test("A board that no game reaches is refused")
    func impossibleBoards() throws {
        let head: [UInt8] = [1, 1, 0, 0, 0, 9, 0, 0, 0, 2, 0x41, 0x6C, 1, 0, 0, 0, 1, 0]
        // Seven discs in one column; a column that does not exist; a move after the end.
        let sequences: [[UInt8]] = [
            [7, 0, 0, 0, 0, 0, 0, 0], [1, 7], [8, 0, 1, 0, 1, 0, 1, 0, 1], [200],
        ]
        for moves in sequences {
            #expect(throws: Breach.garbage) { try TableMessage(head + [0] + moves) }
        }
        // Resigned after a line.
        #expect(throws: Breach.garbage) { try TableMessage(head + [1, 0] + [7, 0, 1, 0, 1, 0, 1, 0]) }
        #expect(throws: Never.self) { try TableMessage(head + [0] + [7, 0, 1, 0, 1, 0, 1, 0]) }
    }

    @Test("A seat without a game, and a running game without a guest, are refused")
    func impossibleTables() {
        #expect(throws: Breach.garbage) { try TableMessage([1, 1, 0, 0, 0, 9, 1, 0, 0, 2, 0x41, 0x6C, 0]) }
        #expect(throws: Breach.garbage) {
            try TableMessage([1, 1, 0, 0, 0, 9, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])
        }
    }

    /// Given as scalars, so that a report of this test does not control a terminal.
    static let steering: [[UInt32]] = [
        [], [0x61, 0x0A, 0x62], [0x1B, 0x5B, 0x32, 0x4A], [0x202E, 0x65], [0x9B, 0x31, 0x6D], [0x61, 0],
    ]

    @Test("Words with line ends or control characters are refused", arguments: steering)
    func words(_ scalars: [UInt32]) {
        let text = String(String.UnicodeScalarView(scalars.compactMap { Unicode.Scalar($0) }))
        #expect(Words(text) == nil)
        let bytes: [UInt8] = [1, 2, 0, 0, 0, 1, 4, 0, UInt8(text.utf8.count)] + Array(text.utf8)
        #expect(throws: Breach.garbage) { try TableMessage(bytes) }
    }

    @Test("A name that is too long or has invalid characters is shortened")
    func fitting() throws {
        #expect(Words(fitting: "\u{1B}[31mPuma\n")?.description == "[31mPuma")
        #expect(Words(fitting: "\n") == nil)
        let long = try #require(Words(fitting: String(repeating: "é", count: 150)))
        #expect(long.description.utf8.count == Words.byteLimit)
        #expect(Words(String(repeating: "é", count: 101)) == nil)
        #expect(Words("👩‍👩‍👧‍👦 family")?.description == "👩‍👩‍👧‍👦 family")
    }

    @Test("Bytes that are not UTF-8 are not text")
    func invalidText() {
        #expect(throws: Breach.garbage) { try TableMessage([1, 2, 0, 0, 0, 1, 4, 0, 2, 0xC3, 0x28]) }
    }
}
