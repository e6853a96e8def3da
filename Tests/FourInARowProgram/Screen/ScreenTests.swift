import ChildPrograms
import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

struct ScreenTests {
    /// Sizes with and without each part of a screen.
    private static let sizes = [29, 51, 100].flatMap { columns in
        [12, 13, 14, 18, 19, 34].map { TerminalSize(columns: columns, rows: $0) }
    }
    private static let least = sizes[0]

    @Test func `Each screen looks like its snapshot`() throws {
        let texts = try Gallery.pictures().map { ("\($0.name).txt", "\($0.text)\n") }
        #expect(
            try Snapshots.differences(
                of: Dictionary(uniqueKeysWithValues: texts), from: "FourInARowProgram/Snapshots/screens")
                == [])
    }

    @Test func `At every size, each screen shows its keys, in ASCII only where that is wanted`() throws {
        for var picture in try Gallery.pictures() {
            for size in Self.sizes + [Scene.small] {
                picture.size = size
                let text = picture.text
                #expect(picture.screen.canvas(size, now: picture.now).size == size)
                // With 12 rows, what has just happened takes the row of the keys.
                #expect(!picture.keys.isEmpty || size.rows == 12, "\(picture.name), \(size)\n\(text)")
                #expect(picture.screen.style.isUnicode || text.allSatisfy(\.isASCII), "\(text)")
            }
        }
    }

    @Test func `Each key that a screen names has an effect`() throws {
        for picture in try Gallery.pictures() {
            for (key, entry) in picture.keys {
                var pressed = picture
                let requests = pressed.screen.type(key, picture.size, now: picture.now)
                #expect(!requests.isEmpty || pressed.text != picture.text, "\(picture.name): \(entry)")
            }
        }
    }

    @Test func `At every size, a player sees whose turn it is, moves, and is asked`() throws {
        for size in Self.sizes {
            var scene = try Scene.playing("dc")
            scene.now = scene.now + .seconds(60)
            let text = scene.text(Scene.puma, size)
            for part in ["It's your turn", "? all keys", "○"] + (1...7).map({ "  \($0)" }) {
                #expect(text.contains(part), "\(size)\n\(text)")
            }
            #expect(text.count { $0 == "●" } >= 2, "\(size)\n\(text)")
            #expect(scene.type(Scene.puma, "4↵", size) == [.act(.move(.middle))], "\(size)")
            #expect(scene.type(Scene.puma, "x", size) == [])
            let question = scene.text(Scene.puma, size)
            #expect(question.contains("Give this game up?") && question.contains("y/n"), "\(question)")
            #expect(scene.type(Scene.puma, "n?", size) == [])
            #expect(scene.text(Scene.puma, size).contains("again"), "the help says how to drop a disc")
        }
    }

    @Test func `At every size, words are shown, and names where there is room`() throws {
        for size in Self.sizes {
            var scene = try Scene.playing("d")
            scene.now = scene.now + .seconds(1)
            try scene.act(.yellow, .say(Scene.words("well done")))
            let text = scene.text(Scene.puma, size)
            #expect(text.contains("Lynx: well done"), "\(text)")
            #expect(text.contains("Puma (you)") || size.rows < 14 && size.columns < 51, "\(text)")
            #expect(scene.type(Scene.puma, "cthanks", size) == [])
            #expect(scene.text(Scene.puma, size).contains("Say: thanks"), "\(size)")
        }
    }

    @Test func `At every size, the lobby lists the tables with their seats`() {
        for size in Self.sizes {
            var lobby = Scene.lobby()
            let text = lobby.canvas(size, now: Scene.start).text
            for part in ["Games near you", "Lynx", "free seat", "Puma", "being played", "Enter join"] {
                #expect(text.contains(part), "\(text)")
            }
            _ = lobby.type("?", size)
            #expect(lobby.canvas(size, now: Scene.start).text.contains("host a game"), "\(size)")
        }
    }

    @Test func `A terminal that is too small shows the size that the game needs`() {
        let text = Scene.lobby().canvas(TerminalSize(columns: 40, rows: 10), now: Scene.start).text
        let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(
            words == "This game needs 29 x 12 characters, and this terminal shows 40 x 10. Ctrl-C quits.")
    }

    @Test func `With more tables than rows, the rows around the chosen table are shown`() {
        var screen = Scene.lobby((1...60).map { Scene.table($0, "Table \($0)") })
        #expect(screen.type("⇲↑↵") == [.join(Scene.peer(59), .seat)])
        let text = screen.canvas(Scene.small, now: Scene.start).text
        for part in ["▸ Table 59 ", "Table 60 ", "59 of 60"] { #expect(text.contains(part)) }
        #expect(!text.contains("Table 1 "))
    }

    @Test func `A player with a known name and another key is marked in the question`() {
        var scene = Scene()
        var owl = SeatRequest(id: Scene.owl, name: "Owl", transport: "tcp")
        owl.trust = .newWithKnownName(of: [Scene.lynx])
        scene.ask(owl)
        #expect(
            scene.text(Scene.puma).contains(
                "You know Owl with another key (\(Scene.lynx.short)): this may be somebody else."))
    }

    @Test func `When the guest has left, the seat is free, and no disc seems to be ready`() throws {
        var scene = try Scene.playing("dc")
        scene.guestGoes()
        let text = scene.text(Scene.puma)
        for part in ["free seat", "Waiting for somebody to play…", "Lynx left the table"] {
            #expect(text.contains(part), "\(text)")
        }
        // A game that waits for a player is not over.
        var view = try Scene.playing("dc").view(of: Scene.puma)
        var table = try #require(view.place.tableView?.table)
        table.guest = nil
        #expect(table.isWaiting)
        view.place = .hosting(TableView(table: table, ownDisc: .red))
        for view in [scene.view(of: Scene.puma), view] {
            let screen = Screen(view, style: Scene.still, now: scene.now)
            let rows = screen.canvas(Scene.small, now: scene.now).text.split(separator: "\n")
            // The names beside the board begin in the same row.
            #expect(rows[2].prefix(32).allSatisfy { $0 == " " }, "\(rows[2])")
        }
    }

    @Test func `All cells of the lines that won are marked`() throws {
        for (moves, count) in [("dcdcdcd", 4), ("aabbcacgbgagd", 7)] {
            let scene = try Scene.playing(moves, watched: true)
            for peer in [Scene.puma, Scene.lynx, Scene.owl] {
                #expect(scene.text(peer).ranges(of: "[●]").count == count, "\(scene.text(peer))")
            }
        }
    }

    @Test func `A disc is pending until the host confirms it`() throws {
        var scene = try Scene.playing("dcd")
        try scene.request(.move(.middle))
        #expect(scene.text(Scene.lynx).contains("◌"))
        scene.deliver()
        #expect(!scene.text(Scene.lynx).contains("◌") && scene.text(Scene.lynx).contains("│(○)│"))
    }

    @Test func `The number of watchers is shown, and a watcher is not counted for itself alone`() throws {
        var scene = try Scene.playing(watched: true)
        #expect(scene.text(Scene.puma).contains("one watches"))
        #expect(scene.text(Scene.owl).contains("nobody else watches"))
        scene.watch(Scene.peer(4))
        #expect(scene.text(Scene.lynx).contains("2 watch"))
        #expect(scene.text(Scene.owl).contains("2 watch, including you"))
    }

    // MARK: Long names

    @Test func `The longest possible name hides nothing that matters`() {
        let name = String(repeating: "long name ", count: 6)
        for (size, transport, parts) in [
            (Scene.small, "bluetooth", ["(you)", "wants to", "over bluetooth", "y/n", "come back"]),
            (
                Self.least, String(repeating: "transport ", count: 20),
                ["long name", "wants to play", "…", "Accept?  y/n"]
            ),
        ] {
            var view = LobbyView(name: name, id: Scene.puma)
            let person = Person(id: Scene.lynx, name: name, linkLostAt: Scene.start)
            view.seatRequests = [SeatRequest(id: Scene.owl, name: name, transport: transport)]
            view.place = .hosting(TableView(table: Table(), ownDisc: .red, guest: person))
            let screen = Screen(view, style: Scene.still, now: Scene.start)
            let text = screen.canvas(size, now: Scene.start).text
            for part in parts { #expect(text.contains(part), "\(text)") }
        }
    }

    @Test func `A title is cut only where its row is full`() throws {
        var view = try Scene.playing().view(of: Scene.lynx)
        var tableView = try #require(view.place.tableView)
        let long = String(repeating: "lynx", count: 15)
        for (name, host, title) in [
            ("Lynx", "Puma with a name that is long", "Puma with a name that is long  Lynx aibaeaqc"),
            (long, "P", "P  lynxlynx"), (long, long, "lynx…  lynxlynx"),
        ] {
            view.name = name
            tableView.host?.name = host
            view.place = .visiting(tableView)
            let screen = Screen(view, style: Scene.still, now: Scene.start)
            let text = screen.canvas(Scene.small, now: Scene.start).text
            #expect(text.hasPrefix(" Four in a Row · game 1 · table of \(title)"), "\(text)")
        }
    }

    // MARK: Details

    @Test func `Round trips have the usual unit, and two or three digits`() {
        let texts: [(Duration, String)] = [
            (.microseconds(40), "0.0 ms"), (.microseconds(1_250), "1.2 ms"), (.milliseconds(9), "9.0 ms"),
            (.milliseconds(85), "85 ms"), (.milliseconds(1_450), "1.4 s"), (.seconds(-1), "0.0 ms"),
        ]
        for (duration, text) in texts { #expect(RoundTripText.text(duration) == text) }
    }

    @Test func `A signal has none to four bars, whatever quality is reported`() {
        let bars = [0, 0.01, 0.3, 0.6, 1, 7, -1, .nan, .infinity].map(Glyphs(isUnicode: true).bars)
        #expect(bars == ["····", "▂···", "▂▄··", "▂▄▆·", "▂▄▆█", "▂▄▆█", "····", "····", "▂▄▆█"])
        #expect(Glyphs(isUnicode: false).bars(0.5) == "##..")
    }
}

extension Picture {
    private static let symbols = [
        "Enter": "↵", "Esc": "⎋", "arrows or 1-7": "←", "1-9 or arrows": "→", "any key": "x",
    ]

    /// The keys that the last row names, each with the whole entry. Of several keys, this is one.
    fileprivate var keys: [(key: String, entry: Substring)] {
        let row = text.split(separator: "\n").last ?? ""
        return row.split(separator: "  ").map { $0.drop { $0 == " " } }.compactMap { entry in
            let name = Self.symbols.keys.first { entry.hasPrefix($0) } ?? String(entry.prefix(1))
            let isKey = entry.dropFirst(name.count).first == " "
            return isKey ? (Self.symbols[name] ?? name, entry) : nil
        }
    }
}
