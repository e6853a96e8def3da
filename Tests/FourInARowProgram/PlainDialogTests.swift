import ChildPrograms
import Guests
import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

struct PlainDialogTests {
    /// A dialog as a person types and reads it. The words are compared with a snapshot.
    private struct Transcript {
        var dialog: PlainDialog
        private(set) var lines: [String]

        init(_ view: LobbyView) {
            dialog = PlainDialog(view)
            lines = dialog.greeting
        }

        mutating func see(_ view: LobbyView, _ news: LobbyNews? = nil) {
            lines += dialog.lines(for: view, news) + dialog.codeLines(nil)
        }

        mutating func type(_ line: String) -> [UserRequest] {
            let reply = dialog.reply(to: line)
            lines += ["> \(line)"] + reply.lines
            return reply.requests
        }

        func expect(_ snapshot: String) throws {
            let text = lines.map { "\($0)\n" }.joined()
            let path = "FourInARowProgram/Snapshots/\(snapshot).txt"
            #expect(try Snapshots.difference(of: text, from: path) == nil)
        }
    }

    @Test func `A player reads each event once, and what is typed becomes requests`() throws {
        var lobby = LobbyView(name: "Lynx", id: Scene.lynx)
        var player = Transcript(lobby)
        let puma = Scene.table(1, "Puma", transports: ["tcp", "bluetooth"], quality: 0.5)
        for tables in [[Scene.table(3, "Owl", hasFreeSeat: false), puma], [puma]] {
            lobby.tables = tables
            for _ in 0..<2 { player.see(lobby) }
        }
        #expect(player.type("l") == [] && player.type("j 2") == [])
        #expect(player.type("w 1") == [.join(puma.id, .watch)])
        #expect(player.type("j") == [.join(puma.id, .seat)])
        var scene = Scene()
        scene.seat()
        for news in [TableNews.joined(seated: true), .began(number: 1, starter: .red)] {
            player.see(scene.view(of: Scene.lynx), .table(news))
        }
        for (index, letter) in Scene.line.enumerated() {
            try scene.move(String(letter))
            let game = try #require(scene.host.table.game)
            let cell = try #require(game.lastCell)
            player.see(scene.view(of: Scene.lynx), .table(.moved(index % 2 == 0 ? .red : .yellow, cell)))
            player.see(scene.view(of: Scene.lynx))
        }
        player.see(scene.view(of: Scene.lynx), .table(.ended(.line(.red))))
        #expect(player.type("4") == [.act(.move(.middle))])
        #expect(player.type("r") == [.act(.rematch)] && player.type("b") == [])
        #expect(player.type("nonsense") == [] && player.type("q") == [.leave])
        // The host leaves the next game. The guest hosts the table, and does not have the turn while the game waits.
        var table = try Scene.playing("d").guest.table
        for guest in [nil, Scene.words("Wren")] {
            table?.guest = guest
            table?.hostDisc = .yellow
            lobby.place = .hosting(TableView(table: try #require(table), ownDisc: .yellow))
            let news = guest.map { LobbyNews.table(.resumed($0)) }
            player.see(lobby, news ?? .hostLeft(name: "Puma", successor: nil))
        }
        lobby.place = .lobby
        player.see(lobby)
        #expect(player.type("q") == [.quit])
        try player.expect("plain-player")
    }

    @Test func `A watcher gets the whole board, and is asked to take a free seat`() throws {
        let scene = try Scene.playing("dd", watched: true)
        var view = scene.view(of: Scene.owl)
        var watcher = Transcript(LobbyView(name: "Owl", id: Scene.owl))
        watcher.see(view, .table(.joined(seated: false)))
        #expect(watcher.type("y") == [])
        var tableView = try #require(view.place.tableView)
        tableView.table.guest = nil
        tableView.isSeatOffered = true
        view.place = .visiting(tableView)
        watcher.see(view, .table(.seatOffered))
        #expect(watcher.type("y") == [.answerOffer(takesSeat: true)])
        #expect(watcher.type("n") == [.answerOffer(takesSeat: false)])
        // Taken, the seat comes with the turn.
        tableView.isSeatOffered = false
        tableView.table.hostDisc = .yellow
        tableView.table.guest = Scene.words("Owl")
        tableView.ownDisc = .red
        view.place = .visiting(tableView)
        watcher.see(view, .table(.resumed(Scene.words("Owl"))))
        try watcher.expect("plain-watcher")
    }

    @Test func `A host accepts with y, declines with n, and is warned of impostors`() throws {
        var scene = Scene()
        var host = Transcript(LobbyView(name: "Puma", id: Scene.puma))
        host.see(scene.view(of: Scene.puma))
        scene.addresses = [
            TransportAddress(scheme: "tcp", value: "192.168.1.7:4000"),
            TransportAddress(scheme: "memory", value: "m1"),
        ]
        host.see(scene.view(of: Scene.puma))
        let trust = PeerTrust.newWithKnownName(of: [Scene.peer(9)])
        for trust in [nil, trust] {
            let owl = SeatRequest(id: Scene.owl, name: "Owl", transport: "tcp", trust: trust)
            scene.seatRequests = [owl]
            host.see(scene.view(of: Scene.puma), .seatRequested(owl))
        }
        #expect(host.type("y") == [.answer(Scene.owl, accept: true)])
        #expect(host.type("n") == [.answer(Scene.owl, accept: false)])
        scene.seatRequests = []
        host.see(scene.view(of: Scene.puma))
        #expect(host.type("y") == [])
        // The list of tables warns, too, and so does the news.
        var table = Scene.table(3, "Owl")
        table.trust = trust
        let lobby = LobbyView(name: "Puma", id: Scene.puma, tables: [table])
        host.see(lobby, .hasKnownName(Scene.owl, name: "Owl", trust))
        try host.expect("plain-host")
    }

    // MARK: Codes for guests

    @Test func `A code is printed once while the seat is free, and when the person asks for it`() throws {
        var scene = Scene()
        scene.takeCode()
        let lobby = LobbyView(name: "Puma", id: Scene.puma)
        var host = Transcript(lobby)
        #expect(host.type("p") == [])
        let free = scene.view(of: Scene.puma)
        host.see(free)
        host.dialog.take(Scene.code)
        for _ in 0..<2 { host.see(free) }
        // Somebody sits down, and the next code waits until the seat is free, or the person asks.
        scene.seat()
        let taken = scene.view(of: Scene.puma)
        host.see(taken)
        for isRequested in [false, true, false] {
            if isRequested { #expect(host.type("p") == [.newCode]) }
            host.dialog.take(Scene.code)
            host.see(taken)
        }
        scene.guestGoes()
        // A code belongs to one table.
        for view in [scene.view(of: Scene.puma), lobby, free] { host.see(view) }
        try host.expect("plain-code")
    }

    @Test func `A printed code is whole, and coloured only on a terminal with colours`() throws {
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

    // MARK: Commands

    @Test func `A command is understood with spaces around it and a carriage return after it`() throws {
        let understood: [(String, PlainCommand)] = [
            ("1", .drop(Column.allCases[0])), (" 7 ", .drop(Column.allCases[6])), ("4\r", .drop(.middle)),
            ("r", .rematch), ("x", .resign), ("b", .board), ("l", .tables), ("y", .yes), ("n", .no),
            ("h", .host), ("q", .quit), ("?", .help), ("j", .join(number: 1)), ("j 12", .join(number: 12)),
            ("w 2", .watch(number: 2)), ("m", .bot(level: 5)), ("m 9", .bot(level: 9)),
            ("c Good game!", .say(Scene.words("Good game!"))),
        ]
        for (line, command) in understood { #expect(try PlainCommand(line) == command, "\(line)") }
        for line in ["", "  ", "\t"] { #expect(try PlainCommand(line) == nil) }
    }

    @Test(
        arguments: [
            "0", "8", "44", "-1", "join", "quit", "c", "c   ", "j x", "j 0", "m 10", "y no", "²", "é", "1 2",
        ])
    func `Anything else is answered as not understood`(_ line: String) {
        let error = #expect(throws: PlainCommand.ParseError.self) { try PlainCommand(line) }
        #expect(error?.message.isEmpty == false)
    }

    @Test func `Every command in the overview can be typed`() throws {
        for line in PlainCommand.overview {
            let names = line.prefix { $0 != ":" }.split { ", ;".contains($0) }
            for name in names where name.count == 1 {
                #expect(try PlainCommand(name == "c" ? "c words" : String(name)) != nil, "\(name)")
            }
        }
    }
}
