import Guests
import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

struct PlainDialogTests {
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
            TableView(
                table: table, ownDisc: disc,
                host: Person(id: try peer(2), name: "Puma", transport: "tcp"), guest: nil, pending: nil))
        return view
    }

    @Test("Tables are listed with their numbers once, and again when they change or disappear")
    func tables() throws {
        var dialog = PlainDialog(try Self.lobby())
        let puma = try Self.table(2, "Puma")
        let owl = try Self.table(3, "Owl", isFree: false)
        #expect(
            dialog.lines(for: try Self.lobby([owl, puma]), nil) == [
                "Table 1: Owl, a game to watch, over tcp or bluetooth, signal 50 %.",
                "Table 2: Puma, a free seat, over tcp or bluetooth, signal 50 %.",
            ])
        #expect(dialog.lines(for: try Self.lobby([owl, puma]), nil).isEmpty)
        #expect(dialog.lines(for: try Self.lobby([puma]), nil) == ["The table of Owl is gone."])
        #expect(
            dialog.reply(to: "l").lines == ["Table 1: Puma, a free seat, over tcp or bluetooth, signal 50 %."]
        )
        #expect(dialog.reply(to: "j").requests == [.join(puma.id, .seat)])
        #expect(dialog.reply(to: "w 1").requests == [.join(puma.id, .watch)])
        #expect(dialog.reply(to: "j 2").lines.first == "There is no table 2.")
        #expect(dialog.reply(to: "j 2").requests.isEmpty)
    }

    @Test("A watcher is asked whether to take the seat of a player that left, and answers with y or n")
    func seatOffer() throws {
        var view = try Self.visiting([3, 3], disc: nil)
        var dialog = PlainDialog(view)
        _ = dialog.lines(for: view, nil)
        #expect(dialog.reply(to: "y").lines == ["Nobody waits for an answer."])
        var tableView = try #require(view.place.tableView)
        tableView.table.guest = nil
        tableView.isSeatOffered = true
        view.place = .visiting(tableView)
        #expect(
            dialog.lines(for: view, .table(.seatOffered)) == [
                "The seat is free. Do you want to play on?", "Take the seat? y or n",
            ])
        #expect(dialog.reply(to: "y").requests == [.answerOffer(takesSeat: true)])
        #expect(dialog.reply(to: "n").requests == [.answerOffer(takesSeat: false)])
        // Taken, the seat comes with the turn.
        tableView.isSeatOffered = false
        tableView.table.hostDisc = .yellow
        tableView.table.guest = Words("Owl")
        tableView.ownDisc = .red
        view.place = .visiting(tableView)
        let name = try #require(Words("Owl"))
        #expect(
            dialog.lines(for: view, .table(.resumed(name))) == [
                "You take the seat: the game goes on.", "It's your turn: 1 to 7.",
            ])
    }

    @Test("A guest that takes over the table learns so, and does not have the turn while the game waits")
    func takenOver() throws {
        var view = try Self.visiting([3])
        var dialog = PlainDialog(view)
        _ = dialog.lines(for: view, .table(.began(number: 1, starter: .red)))
        var table = try #require(view.place.tableView?.table)
        table.guest = nil
        table.hostDisc = .yellow
        view.place = .hosting(TableView(table: table, ownDisc: .yellow, host: nil, guest: nil, pending: nil))
        #expect(
            dialog.lines(for: view, .hostLeft(name: "Puma", successor: nil)) == [
                "Puma left; you now host the table. Waiting for a player."
            ])
        table.guest = Words("Wren")
        view.place = .hosting(TableView(table: table, ownDisc: .yellow, host: nil, guest: nil, pending: nil))
        let name = try #require(Words("Wren"))
        #expect(
            dialog.lines(for: view, .table(.resumed(name))) == [
                "Wren takes the seat: the game goes on.", "It's your turn: 1 to 7.",
            ])
    }

    @Test("Each move is reported with its column's number, and each turn once")
    func moves() throws {
        var dialog = PlainDialog(try Self.lobby())
        #expect(
            dialog.lines(for: try Self.visiting([]), .table(.joined(seated: true)))
                == ["You sit at the table of Puma, and play yellow."])
        #expect(
            dialog.lines(for: try Self.visiting([]), .table(.began(number: 1, starter: .red)))
                == ["Game 1 begins: Puma moves first."])
        let first = try #require(Cell(column: Column.allCases[3], row: 0))
        #expect(
            dialog.lines(for: try Self.visiting([3]), .table(.moved(.red, first)))
                == ["Puma dropped a disc into column 4, row 1.", "It's your turn: 1 to 7."])
        #expect(dialog.lines(for: try Self.visiting([3]), nil).isEmpty)
        #expect(dialog.reply(to: "4").requests == [.act(.move(Column.allCases[3]))])
        let second = try #require(Cell(column: Column.allCases[3], row: 1))
        #expect(
            dialog.lines(for: try Self.visiting([3, 3]), .table(.moved(.yellow, second)))
                == ["You dropped a disc into column 4, row 2."])
    }

    @Test("The end is reported with the board")
    func end() throws {
        var dialog = PlainDialog(try Self.visiting([0, 1, 0, 1, 0, 1]))
        let over = try Self.visiting([0, 1, 0, 1, 0, 1, 0])
        #expect(
            dialog.lines(for: over, .table(.ended(.line(.red)))) == [
                "Puma wins.", "1 2 3 4 5 6 7", ". . . . . . .", ". . . . . . .", "R . . . . . .",
                "R Y . . . . .",
                "R Y . . . . .", "R Y . . . . .", "R is red, Y is yellow.",
            ])
        #expect(dialog.reply(to: "r").requests == [.act(.rematch)])
        #expect(dialog.reply(to: "b").lines.count == 8)
    }

    @Test("A watcher gets the whole board on joining")
    func watching() throws {
        var dialog = PlainDialog(try Self.lobby())
        let lines = dialog.lines(for: try Self.visiting([3], disc: nil), .table(.joined(seated: false)))
        #expect(lines.first == "You watch at the table of Puma.")
        #expect(lines.contains(". . . R . . ."))
        #expect(!lines.contains { $0.contains("your turn") })
    }

    @Test("y accepts a player who asks, and n declines")
    func asked() throws {
        var view = try Self.lobby()
        view.place = .hosting(TableView(table: Table(), ownDisc: .red, host: nil, guest: nil, pending: nil))
        let owl = SeatRequest(id: try Self.peer(3), name: "Owl", transport: "tcp")
        view.seatRequests = [owl]
        var dialog = PlainDialog(try Self.lobby())
        #expect(
            dialog.lines(for: view, nil) == ["You host a table. Others nearby see it under the name Lynx."])
        view.addresses = [
            TransportAddress(scheme: "tcp", value: "192.168.1.7:4000"),
            TransportAddress(scheme: "memory", value: "m1"),
        ]
        #expect(dialog.lines(for: view, nil) == ["From elsewhere it is reached at tcp://192.168.1.7:4000"])
        #expect(
            dialog.lines(for: view, .seatRequested(owl)) == [
                "Owl wants to play, over tcp.", "Accept? y or n",
            ])
        #expect(dialog.reply(to: "y").requests == [.answer(owl.id, accept: true)])
        #expect(dialog.reply(to: "n").requests == [.answer(owl.id, accept: false)])
        view.seatRequests = []
        _ = dialog.lines(for: view, nil)
        #expect(dialog.reply(to: "y") == .init(lines: ["Nobody waits for an answer."]))
    }

    @Test("A known name with another key is marked in the question and in the list of tables")
    func knownName() throws {
        let other = try Self.peer(9)
        let warning = "You know Owl with another key (\(other.short)): this may be somebody else."
        var owl = SeatRequest(id: try Self.peer(3), name: "Owl", transport: "tcp")
        owl.trust = .newWithKnownName(of: [other])
        var view = try Self.lobby()
        view.seatRequests = [owl]
        var dialog = PlainDialog(try Self.lobby())
        let question = dialog.lines(for: view, .seatRequested(owl))
        #expect(question.first == "Owl wants to play, over tcp.")
        #expect(question.contains(warning) && question.contains("Accept? y or n"))
        var table = try Self.table(3, "Owl")
        table.trust = .newWithKnownName(of: [other])
        #expect(dialog.lines(for: try Self.lobby([table]), nil).contains { $0.hasSuffix(warning) })
        let news = LobbyNews.hasKnownName(owl.id, name: "Owl", .newWithKnownName(of: [other]))
        #expect(dialog.lines(for: try Self.lobby([table]), news).contains(warning))
    }

    @Test("q leaves a table, and ends the program in the lobby")
    func quitting() throws {
        var atTable = PlainDialog(try Self.visiting([]))
        #expect(atTable.reply(to: "q").requests == [.leave])
        var inLobby = PlainDialog(try Self.lobby())
        #expect(inLobby.reply(to: "q").requests == [.quit])
        #expect(inLobby.reply(to: "nonsense").requests.isEmpty)
    }

    @Test("A code is printed once while the seat is free, and when the person asks for it")
    func code() throws {
        var scene = Scene()
        scene.takeCode()
        var dialog = PlainDialog(try Self.lobby())
        let reason = dialog.reply(to: "p").lines.first
        #expect(reason?.hasPrefix("The code for phones is shown at your own table") == true)
        func lines(_ view: LobbyView) -> [String] {
            _ = dialog.lines(for: view, nil)
            return dialog.codeLines(nil)
        }
        #expect(lines(scene.view(of: Scene.puma)).isEmpty)
        dialog.take(Scene.code)
        #expect(
            dialog.codeLines(nil) == [
                "To play in the browser of a phone, open \(Scene.code.address)", GuestReception.warning,
            ])
        #expect(lines(scene.view(of: Scene.puma)).isEmpty, "it was printed")
        // Somebody sits down, and the next code waits until the seat is free, or the person asks.
        var playing = scene
        playing.seat()
        #expect(lines(playing.view(of: Scene.puma)).isEmpty)
        dialog.take(Scene.code)
        #expect(lines(playing.view(of: Scene.puma)).isEmpty)
        #expect(dialog.reply(to: "p") == PlainDialog.Reply(requests: [.newCode]))
        dialog.take(Scene.code)
        #expect(dialog.codeLines(nil).first == "For the next phone, open \(Scene.code.address)")
        dialog.take(Scene.code)
        #expect(lines(playing.view(of: Scene.puma)).isEmpty)
        playing.guestGoes()
        #expect(lines(playing.view(of: Scene.puma)).count == 2)
        // A code belongs to one table.
        #expect(lines(try Self.lobby()).isEmpty)
        #expect(lines(scene.view(of: Scene.puma)).isEmpty)
    }

    @Test("A printed code has all lines of its picture, coloured only on a terminal with colours")
    func codePicture() throws {
        let traits = TerminalTraits(colours: .sixteen, isUnicode: true)
        let style = try #require(PrintedCodeStyle(traits, isTerminal: false))
        let lines = Scene.code.lines(style, isFirst: true)
        let picture = lines.filter { $0.hasPrefix("    █") }
        #expect(picture.map { String($0.dropFirst(4)) } == Scene.code.picture)
        #expect(lines.contains { $0.hasSuffix("open  \(Scene.code.address)") })
        #expect(lines.contains(GuestReception.warning))
        let coloured = try #require(PrintedCodeStyle(traits, isTerminal: true))
        #expect(Scene.code.lines(coloured, isFirst: true).contains { $0.hasPrefix("    \u{1B}[97;40m█") })
        #expect(PrintedCodeStyle(TerminalTraits(colours: .none, isUnicode: false), isTerminal: true) == nil)
    }
}
