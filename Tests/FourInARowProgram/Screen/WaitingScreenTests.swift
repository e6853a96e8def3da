import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite("Screens of a table that waits for a guest")
struct WaitingScreenTests {
    @Test("Whoever hosts and is alone sees under which name and where others find the table")
    func waiting() {
        var scene = Scene()
        scene.addresses = [
            TransportAddress(scheme: "tcp", value: "192.168.1.20:4000"),
            TransportAddress(scheme: "bluetooth", value: "00:1A:7D:DA:71:13/3"),
        ]
        scene.tell(Scene.puma, LobbyNews?.none)
        expect(
            screen: scene.text(Scene.puma),
            """
             Four in a Row · your table                                       Puma aeaqcaib
            ────────────────────────────────────────────────────────────────────────────────
                                              ● Puma (you)
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ free seat
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   Others near see this table under the name
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

    @Test("Somebody asks for the seat while another one waits")
    func asked() {
        var scene = Scene()
        scene.askers = [
            Asker(id: Scene.owl, name: "Owl", transport: "tcp"),
            Asker(id: Scene.lynx, name: "Lynx", transport: "bluetooth"),
        ]
        scene.tell(Scene.puma, .asked(scene.askers[0]))
        expect(
            screen: scene.text(Scene.puma),
            """
             Four in a Row · your table                                       Puma aeaqcaib
            ────────────────────────────────────────────────────────────────────────────────
                                              ● Puma (you)
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ free seat
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   Others near see this table under the name
              │   │   │   │   │   │   │   │   Puma.
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼ ╔══════════════════════════════╗
              │   │   │   │   │   │ ║ Owl wants to play, over tcp. ║
              ├───┼───┼───┼───┼───┼ ║ Let them?  y/n               ║
              │   │   │   │   │   │ ║                              ║
              ├───┼───┼───┼───┼───┼ ║ one more waits               ║
              │   │   │   │   │   │ ╚══════════════════════════════╝
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             Waiting for somebody to play…




             y let them  n don't  ? all keys  q leave
            """)
    }

    @Test("Who asks under a known name with another key is pointed out in the question")
    func knownName() {
        var scene = Scene()
        var owl = Asker(id: Scene.owl, name: "Owl", transport: "tcp")
        owl.trust = .newWithKnownName(of: [Scene.lynx])
        scene.askers = [owl]
        scene.tell(Scene.puma, .asked(owl))
        let text = scene.text(Scene.puma)
        #expect(text.contains("Owl wants to play, over tcp."))
        #expect(
            text.contains("You know Owl with another key (\(Scene.lynx.short)): this may be somebody else."))
        #expect(text.contains("Let them?  y/n"))
    }

    @Test("When the guest has left the table waits for another one")
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
              ├───┼───┼───┼───┼───┼───┼───┤   Others near see this table under the name
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
}
