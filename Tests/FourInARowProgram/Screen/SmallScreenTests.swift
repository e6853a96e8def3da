import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite("Screens of small terminals")
struct SmallScreenTests {
    private static let least = TerminalSize(columns: 29, rows: 12)
    /// Sizes with and without each part of a screen.
    private static let sizes = [29, 51, 100].flatMap { columns in
        [12, 13, 14, 18, 19, 34].map { TerminalSize(columns: columns, rows: $0) }
    }

    @Test(
        "Every size that holds the board shows whose turn it is, takes a move, and asks its questions in full"
    )
    func everySize() throws {
        for size in Self.sizes {
            var scene = try Scene.playing("dc")
            scene.now = scene.now + .seconds(60)
            let text = scene.text(Scene.puma, size)
            #expect(text.contains("It's your turn"), "\(size)")
            #expect(text.contains("? all keys"), "\(size)")
            #expect((1...7).allSatisfy { text.contains("  \($0)") }, "\(size)")
            #expect(text.count { $0 == "●" } >= 2 && text.contains("○"), "\(size)")
            #expect(scene.press(Scene.puma, .character("4"), size) == [])
            #expect(scene.press(Scene.puma, .key(.enter), size) == [.act(.move(.middle))], "\(size)")
            #expect(scene.press(Scene.puma, .character("x"), size) == [])
            #expect(scene.text(Scene.puma, size).contains("Give this game up?"), "\(size)")
            #expect(scene.text(Scene.puma, size).contains("y/n"), "\(size)")
        }
    }

    @Test("Every size names the players from 14 rows on, and shows what is said and what is typed")
    func words() throws {
        for size in Self.sizes {
            var scene = try Scene.playing("d")
            scene.now = scene.now + .seconds(1)
            try scene.act(.yellow, .say(Scene.words("well done")))
            #expect(scene.text(Scene.puma, size).contains("Lynx: well done"), "\(size)")
            if size.rows >= 14 || size.columns >= 51 {
                #expect(scene.text(Scene.puma, size).contains("Puma (you)"), "\(size)")
            }
            for letter in "cthanks".unicodeScalars {
                #expect(scene.press(Scene.puma, .character(letter), size) == [])
            }
            #expect(scene.text(Scene.puma, size).contains("Say: thanks"), "\(size)")
        }
    }

    @Test("Every size lists the tables with their seats, and the keys that drop a disc in its help")
    func lobbies() throws {
        for size in Self.sizes {
            var lobby = LobbyScenes.three
            let text = lobby.canvas(size, now: LobbyScenes.now).text
            for part in [
                "Games near you", "Lynx", "free seat", "Puma", "being played", "Enter join", "all keys",
            ] {
                #expect(text.contains(part), "\(size)")
            }
            _ = lobby.handle(.character("?"), size: size, now: LobbyScenes.now)
            #expect(lobby.canvas(size, now: LobbyScenes.now).text.contains("host a game"), "\(size)")
            var scene = try Scene.playing()
            _ = scene.press(Scene.puma, .character("?"), size)
            #expect(scene.text(Scene.puma, size).contains("again"), "\(size)")
        }
    }

    @Test("The smallest terminal shows the board, whose turn it is and the keys")
    func smallest() throws {
        var scene = try Scene.playing("dcd")
        scene.now = scene.now + .seconds(60)
        expect(
            screen: scene.text(Scene.lynx, Self.least),
            """
                          ○
            ┌───┬───┬───┬───┬───┬───┬───┐
            │   │   │   │   │   │   │   │
            │   │   │   │   │   │   │   │
            │   │   │   │   │   │   │   │
            │   │   │   │   │   │   │   │
            │   │   │   │(●)│   │   │   │
            │   │   │ ○ │ ● │   │   │   │
            └───┴───┴───┴───┴───┴───┴───┘
              1   2   3   4   5   6   7
            It's your turn
            Enter drop  ? all keys
            """)
    }

    @Test("A terminal of 40 x 14 characters also shows who plays, and what is typed in a row of its own")
    func narrow() throws {
        var scene = try Scene.playing("dcd")
        _ = scene.press(Scene.lynx, .character("c"))
        expect(
            screen: scene.text(Scene.lynx, TerminalSize(columns: 40, rows: 14)),
            """
             ● Puma              ○ Lynx (you)
                            ○
              ┌───┬───┬───┬───┬───┬───┬───┐
              │   │   │   │   │   │   │   │
              │   │   │   │   │   │   │   │
              │   │   │   │   │   │   │   │
              │   │   │   │   │   │   │   │
              │   │   │   │(●)│   │   │   │
              │   │   │ ○ │ ● │   │   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7
             It's your turn
             Say:
             Enter send  Esc cancel
            """)
    }

    @Test("A terminal of 60 x 20 characters has lines between the cells, and the names beside them")
    func medium() throws {
        expect(
            screen: try Scene.playing("dcd").text(Scene.lynx, TerminalSize(columns: 60, rows: 20)),
            """
             Four in a Row · game 1 · table of Puma       Lynx aibaeaqc
                            ○                 ● Puma aeaqcaib
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx (you)
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   over tcp
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │(●)│   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │ ● │   │   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7
             It's your turn
             you sit at the table of Puma
             game 1 begins: Puma moves first
             arrows or 1-7 choose  Enter drop  c chat  ? all keys
            """)
    }

    @Test("The smallest lobby shows names, seats and keys")
    func smallestLobby() throws {
        expect(
            screen: LobbyScenes.three.canvas(Self.least, now: LobbyScenes.now).text,
            """
            Four in a Row             Owl
            Games near you
            ▸ Lynx         free seat
              Puma         being played
              Wren with a… free seat






            Enter join  ? all keys
            """)
    }

    @Test("A long question on the smallest terminal keeps its beginning and what to press")
    func longQuestion() {
        let name = String(repeating: "long name ", count: 6)
        var view = LobbyView(name: "Puma", id: Scene.puma)
        view.seatRequests = [
            SeatRequest(id: Scene.owl, name: name, transport: String(repeating: "transport ", count: 20))
        ]
        view.place = .hosting(
            TableView(table: Table(), ownDisc: .red, host: nil, guest: nil, pending: nil))
        let screen = Screen(view, style: LobbyScenes.unicode, now: LobbyScenes.now)
        let text = screen.canvas(Self.least, now: LobbyScenes.now).text
        for part in ["long name", "wants to play", "…", "Accept?  y/n"] { #expect(text.contains(part)) }
    }

    @Test("A title is cut only where its row is full")
    func title() throws {
        let scene = try Scene.playing()
        var view = scene.view(of: Scene.lynx)
        var tableView = try #require(view.place.tableView)
        func row(_ name: String, host: String) throws -> String {
            view.name = name
            tableView.host?.name = host
            view.place = .visiting(tableView)
            let screen = Screen(view, style: LobbyScenes.unicode, now: scene.now)
            return String(
                try #require(screen.canvas(Scene.small, now: scene.now).text.split(separator: "\n").first))
        }
        let host = "Puma with a name that is long"
        #expect(try row("Lynx", host: host) == " Four in a Row · game 1 · table of \(host)  Lynx aibaeaqc")
        let long = String(repeating: "lynx", count: 15)
        #expect(try row(long, host: "P").hasPrefix(" Four in a Row · game 1 · table of P  lynxlynx"))
        #expect(try row(long, host: long).hasPrefix(" Four in a Row · game 1 · table of lynx…  lynxlynx"))
    }
}
