import NighCore
import Testing

@testable import FourInARow
@testable import fourinarow

struct PlainTalkTests {
    private static func peer(_ number: UInt8) throws -> PeerID {
        try #require(PeerID(bytes: [UInt8](repeating: number, count: PeerID.byteCount)))
    }

    private static func lobby(_ tables: [TableListing] = []) throws -> LobbyView {
        LobbyView(name: "Lynx", id: try peer(1), tables: tables)
    }

    private static func table(_ number: UInt8, _ name: String, isFree: Bool = true) throws -> TableListing {
        TableListing(
            id: try peer(number), name: name, hasFreeSeat: isFree, transports: ["tcp", "bluetooth"],
            quality: 0.5)
    }

    /// Lynx at Puma's table after these moves.
    private static func visiting(_ columns: [Int], disc: Disc? = .yellow) throws -> LobbyView {
        var table = Table()
        try table.apply(.sat(try #require(Words("Lynx"))))
        for index in columns {
            let turn = try #require(table.game?.turn)
            try table.apply(table.happening(of: .move(try #require(Column(index))), by: turn))
        }
        var view = try lobby()
        view.place = .visiting(
            Sitting(
                table: table, ownDisc: disc,
                host: Person(id: try peer(2), name: "Puma", transport: "tcp"), guest: nil, pending: nil))
        return view
    }

    @Test("Tables are told with their numbers, once, and when they change or go")
    func tables() throws {
        var talk = PlainTalk(try Self.lobby())
        let puma = try Self.table(2, "Puma")
        let owl = try Self.table(3, "Owl", isFree: false)
        #expect(
            talk.lines(for: try Self.lobby([owl, puma]), nil) == [
                "Table 1: Owl, a game to watch, over tcp or bluetooth, signal 50 %.",
                "Table 2: Puma, a free seat, over tcp or bluetooth, signal 50 %.",
            ])
        #expect(talk.lines(for: try Self.lobby([owl, puma]), nil).isEmpty)
        #expect(talk.lines(for: try Self.lobby([puma]), nil) == ["The table of Owl is gone."])
        #expect(
            talk.reply(to: "l").lines == ["Table 1: Puma, a free seat, over tcp or bluetooth, signal 50 %."])
        #expect(talk.reply(to: "j").wishes == [.join(puma.id, .seat)])
        #expect(talk.reply(to: "w 1").wishes == [.join(puma.id, .watch)])
        #expect(talk.reply(to: "j 2").lines.first == "There is no table 2.")
        #expect(talk.reply(to: "j 2").wishes.isEmpty)
    }

    @Test("Each move is told by its column's number, and whose turn it is once")
    func moves() throws {
        var talk = PlainTalk(try Self.lobby())
        #expect(
            talk.lines(for: try Self.visiting([]), .table(.cameIn(seated: true)))
                == ["You sit at the table of Puma, and play yellow."])
        #expect(
            talk.lines(for: try Self.visiting([]), .table(.began(number: 1, starter: .red)))
                == ["Game 1 begins: Puma moves first."])
        let first = try #require(Cell(column: Column.allCases[3], row: 0))
        #expect(
            talk.lines(for: try Self.visiting([3]), .table(.moved(.red, first)))
                == ["Puma dropped a disc into column 4, row 1.", "It's your turn: 1 to 7."])
        #expect(talk.lines(for: try Self.visiting([3]), nil).isEmpty)
        #expect(talk.reply(to: "4").wishes == [.act(.move(Column.allCases[3]))])
        let second = try #require(Cell(column: Column.allCases[3], row: 1))
        #expect(
            talk.lines(for: try Self.visiting([3, 3]), .table(.moved(.yellow, second)))
                == ["You dropped a disc into column 4, row 2."])
    }

    @Test("The end is told with the board")
    func end() throws {
        var talk = PlainTalk(try Self.visiting([0, 1, 0, 1, 0, 1]))
        let over = try Self.visiting([0, 1, 0, 1, 0, 1, 0])
        #expect(
            talk.lines(for: over, .table(.ended(.line(.red)))) == [
                "Puma wins.", "1 2 3 4 5 6 7", ". . . . . . .", ". . . . . . .", "R . . . . . .",
                "R Y . . . . .",
                "R Y . . . . .", "R Y . . . . .", "R is red, Y is yellow.",
            ])
        #expect(talk.reply(to: "r").wishes == [.act(.rematch)])
        #expect(talk.reply(to: "b").lines.count == 8)
    }

    @Test("Who comes to watch is told the whole board")
    func watching() throws {
        var talk = PlainTalk(try Self.lobby())
        let lines = talk.lines(for: try Self.visiting([3], disc: nil), .table(.cameIn(seated: false)))
        #expect(lines.first == "You watch at the table of Puma.")
        #expect(lines.contains(". . . R . . ."))
        #expect(!lines.contains { $0.contains("your turn") })
    }

    @Test("Whoever asks is answered by y and n")
    func asked() throws {
        var view = try Self.lobby()
        view.place = .hosting(Sitting(table: Table(), ownDisc: .red, host: nil, guest: nil, pending: nil))
        let owl = Asker(id: try Self.peer(3), name: "Owl", transport: "tcp")
        view.askers = [owl]
        var talk = PlainTalk(try Self.lobby())
        #expect(
            talk.lines(for: view, nil) == ["You host a table. Others near see it under the name Lynx."])
        view.addresses = [
            TransportAddress(scheme: "tcp", value: "192.168.1.7:4000"),
            TransportAddress(scheme: "memory", value: "m1"),
        ]
        #expect(talk.lines(for: view, nil) == ["From elsewhere it is reached at tcp://192.168.1.7:4000"])
        #expect(talk.lines(for: view, .asked(owl)) == ["Owl wants to play, over tcp.", "Let them? y or n"])
        #expect(talk.reply(to: "y").wishes == [.answer(owl.id, accept: true)])
        #expect(talk.reply(to: "n").wishes == [.answer(owl.id, accept: false)])
        view.askers = []
        _ = talk.lines(for: view, nil)
        #expect(talk.reply(to: "y") == .init(lines: ["Nobody waits for an answer."]))
    }

    @Test("A known name with another key is pointed out with the question, and in the list of tables")
    func knownName() throws {
        let other = try Self.peer(9)
        let warning = "You know Owl with another key (\(other.short)): this may be somebody else."
        var owl = Asker(id: try Self.peer(3), name: "Owl", transport: "tcp")
        owl.trust = .newWithKnownName(of: [other])
        var view = try Self.lobby()
        view.askers = [owl]
        var talk = PlainTalk(try Self.lobby())
        let question = talk.lines(for: view, .asked(owl))
        #expect(question.first == "Owl wants to play, over tcp.")
        #expect(question.contains(warning) && question.contains("Let them? y or n"))
        var table = try Self.table(3, "Owl")
        table.trust = .newWithKnownName(of: [other])
        #expect(talk.lines(for: try Self.lobby([table]), nil).contains { $0.hasSuffix(warning) })
        let news = LobbyNews.hasKnownName(owl.id, name: "Owl", .newWithKnownName(of: [other]))
        #expect(talk.lines(for: try Self.lobby([table]), news).contains(warning))
    }

    @Test("q leaves a table, and ends the program in the lobby")
    func quitting() throws {
        #expect(PlainTalk(try Self.visiting([])).reply(to: "q").wishes == [.leave])
        #expect(PlainTalk(try Self.lobby()).reply(to: "q").wishes == [.quit])
        #expect(PlainTalk(try Self.lobby()).reply(to: "nonsense").wishes.isEmpty)
    }
}
