import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite("Screens of a table that waits for a guest")
struct WaitingScreenTests {
    @Test("A host who waits alone sees the name and the addresses of the table")
    func waiting() {
        var scene = Scene()
        scene.addresses = [
            TransportAddress(scheme: "tcp", value: "192.168.1.20:4000"),
            TransportAddress(scheme: "bluetooth", value: "00:1A:7D:DA:71:13/3"),
        ]
        scene.show(Scene.puma, LobbyNews?.none)
        expect(
            screen: scene.text(Scene.puma),
            """
             Four in a Row · your table                                       Puma aeaqcaib
            ────────────────────────────────────────────────────────────────────────────────
                                              ● Puma (you)
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ free seat
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   Others nearby see this table under the name
              │   │   │   │   │   │   │   │   Puma.
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │   From elsewhere it is reached at
              ├───┼───┼───┼───┼───┼───┼───┤     tcp://192.168.1.20:4000
              │   │   │   │   │   │   │   │     bluetooth://00:1A:7D:DA:71:13/3
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             Waiting for somebody to play…




             ? all keys  q leave
            """)
    }

    @Test("A second player asks for the seat while the first one waits")
    func asked() {
        var scene = Scene()
        scene.seatRequests = [
            SeatRequest(id: Scene.owl, name: "Owl", transport: "tcp"),
            SeatRequest(id: Scene.lynx, name: "Lynx", transport: "bluetooth"),
        ]
        scene.show(Scene.puma, .seatRequested(scene.seatRequests[0]))
        expect(
            screen: scene.text(Scene.puma),
            """
             Four in a Row · your table                                       Puma aeaqcaib
            ────────────────────────────────────────────────────────────────────────────────
                                              ● Puma (you)
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ free seat
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   Others nearby see this table under the name
              │   │   │   │   │   │   │   │   Puma.
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼ ╔══════════════════════════════╗
              │   │   │   │   │   │ ║ Owl wants to play, over tcp. ║
              ├───┼───┼───┼───┼───┼ ║ one more waits               ║
              │   │   │   │   │   │ ║                              ║
              ├───┼───┼───┼───┼───┼ ║ Accept?  y/n                 ║
              │   │   │   │   │   │ ╚══════════════════════════════╝
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             Waiting for somebody to play…




             y accept  n decline  ? all keys  q leave
            """)
    }

    @Test("A player with a known name and another key is marked in the question")
    func knownName() {
        var scene = Scene()
        var owl = SeatRequest(id: Scene.owl, name: "Owl", transport: "tcp")
        owl.trust = .newWithKnownName(of: [Scene.lynx])
        scene.seatRequests = [owl]
        scene.show(Scene.puma, .seatRequested(owl))
        let text = scene.text(Scene.puma)
        #expect(text.contains("Owl wants to play, over tcp."))
        #expect(
            text.contains("You know Owl with another key (\(Scene.lynx.short)): this may be somebody else."))
        #expect(text.contains("Accept?  y/n"))
    }

    @Test("When the guest has left, the table waits for another one")
    func left() throws {
        var scene = try Scene.playing("dc")
        scene.guestGoes()
        expect(
            screen: scene.text(Scene.puma),
            """
             Four in a Row · game 1 · your table                              Puma aeaqcaib
            ────────────────────────────────────────────────────────────────────────────────
                                              ● Puma (you)
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ free seat
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   Others nearby see this table under the name
              │   │   │   │   │   │   │   │   Puma.
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │(○)│ ● │   │   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             Waiting for somebody to play…
             Lynx sits down
             game 1 begins: you move first
             Lynx left the table

             ? all keys  q leave
            """)
    }

    @Test("While a game waits for a player, no disc is shown as if it could be dropped")
    func waitingGame() throws {
        let scene = try Scene.playing("dc")
        var view = scene.view(of: Scene.puma)
        var table = scene.host.table
        table.guest = nil
        #expect(table.isWaiting)
        view.place = .hosting(TableView(table: table, ownDisc: .red))
        let style = ScreenStyle(isUnicode: true, animates: false)
        let screen = Screen(view, style: style, now: scene.now)
        let rows = screen.canvas(Scene.small, now: scene.now).text.split(
            separator: "\n", omittingEmptySubsequences: false)
        // The names beside the board begin in the same row.
        #expect(rows[2].prefix(32).allSatisfy { $0 == " " }, "\(rows[2])")
    }
}
