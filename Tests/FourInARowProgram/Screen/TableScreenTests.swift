import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite("Screens of a table in play")
struct TableScreenTests {
    /// A table with four discs, one watcher and a measured link.
    private func scene() throws -> Scene {
        var scene = try Scene.playing("dcde", watched: true)
        scene.link.roundTrip = .microseconds(1_234)
        for peer in [Scene.puma, Scene.lynx, Scene.owl] { scene.show(peer, LobbyNews?.none) }
        return scene
    }

    @Test("The player whose turn it is sees a disc above the column, the players and their transports")
    func ownTurn() throws {
        expect(
            screen: try scene().text(Scene.puma),
            """
             Four in a Row · game 1 · your table                              Puma aeaqcaib
            ────────────────────────────────────────────────────────────────────────────────
                            ●                 ● Puma (you)
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx aibaeaqc
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   over tcp, round trip 1.2 ms
              │   │   │   │   │   │   │   │   one watches
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │ ● │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │ ● │(○)│   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             It's your turn
             Lynx sits down
             game 1 begins: you move first


             arrows or 1-7 choose  Enter drop  c chat  x resign  ? all keys  q leave
            """)
    }

    @Test("The other player sees whose turn it is")
    func otherTurn() throws {
        expect(
            screen: try scene().text(Scene.lynx),
            """
             Four in a Row · game 1 · table of Puma                           Lynx aibaeaqc
            ────────────────────────────────────────────────────────────────────────────────
                            ▼                 ● Puma aeaqcaib
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx (you)
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   over tcp, round trip 1.2 ms
              │   │   │   │   │   │   │   │   one watches
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │ ● │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │ ● │(○)│   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             It's Puma's turn
             you sit at the table of Puma
             game 1 begins: Puma moves first


             arrows or 1-7 choose  Enter drop  c chat  x resign  ? all keys  q leave
            """)
    }

    @Test("A watcher sees the same board, without a cursor")
    func watched() throws {
        expect(
            screen: try scene().text(Scene.owl),
            """
             Four in a Row · game 1 · table of Puma                            Owl ambqgayd
            ────────────────────────────────────────────────────────────────────────────────
                                              ● Puma aeaqcaib
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   over tcp, round trip 1.2 ms
              │   │   │   │   │   │   │   │   nobody else watches
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │ ● │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │ ● │(○)│   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             It's Puma's turn
             you watch at the table of Puma



             ? all keys  q leave
            """)
    }

    @Test("A disc that the host has not confirmed is shown as pending")
    func pending() throws {
        var scene = try scene()
        try scene.move("d")
        try scene.request(.move(.middle))
        expect(
            screen: scene.text(Scene.lynx),
            """
             Four in a Row · game 1 · table of Puma                           Lynx aibaeaqc
            ────────────────────────────────────────────────────────────────────────────────
                            ▼                 ● Puma aeaqcaib
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx (you)
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   over tcp, round trip 1.2 ms
              │   │   │   │   │   │   │   │   one watches
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │ ◌ │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │(●)│   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │ ● │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │ ● │ ○ │   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             Your disc is on its way to Puma…
             you sit at the table of Puma
             game 1 begins: Puma moves first


             arrows or 1-7 choose  Enter drop  c chat  x resign  ? all keys  q leave
            """)
        scene.deliver()
        #expect(!scene.text(Scene.lynx).contains("◌"))
        #expect(scene.text(Scene.lynx).contains("│(○)│"))
    }

    @Test("Words that were said are beside the board, while a line is typed below it")
    func chat() throws {
        var scene = try Scene.playing("d")
        try scene.act(.yellow, .say(Scene.words("good luck")))
        try scene.act(
            .red, .say(Scene.words("to you too: I have not played for years, so be a little patient")))
        #expect(scene.type(Scene.lynx, "cdon't worry") == [])
        expect(
            screen: scene.text(Scene.lynx),
            """
             Four in a Row · game 1 · table of Puma                           Lynx aibaeaqc
            ────────────────────────────────────────────────────────────────────────────────
                            ○                 ● Puma aeaqcaib
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx (you)
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   over tcp
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   you: good luck
              │   │   │   │   │   │   │   │   Puma: to you too: I have not played for
              ├───┼───┼───┼───┼───┼───┼───┤   years, so be a little patient
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │(●)│   │   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             It's your turn
             you sit at the table of Puma
             game 1 begins: Puma moves first

             Say: don't worry
             Enter send  Esc cancel
            """)
    }

    @Test("While a player is away, the remaining seconds are counted down")
    func away() throws {
        var scene = try Scene.playing("d")
        scene.link.linkLostAt = scene.now
        scene.show(Scene.puma, .linkLost(scene.person(Scene.lynx), waiting: .seconds(10)))
        scene.now = scene.now + .milliseconds(3_200)
        expect(
            screen: scene.text(Scene.puma),
            """
             Four in a Row · game 1 · your table                              Puma aeaqcaib
            ────────────────────────────────────────────────────────────────────────────────
                            ▼                 ● Puma (you)
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx aibaeaqc
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   no link to Lynx now
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │(●)│   │   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             No connection to Lynx: waiting 7 s for them to come back
             Lynx sits down
             game 1 begins: you move first


             arrows or 1-7 choose  Enter drop  c chat  x resign  ? all keys  q leave
            """)
    }

    @Test("Leaving a game needs a confirmation")
    func leaving() throws {
        var scene = try Scene.playing("d")
        #expect(scene.type(Scene.lynx, "q") == [])
        expect(
            screen: scene.text(Scene.lynx),
            """
             Four in a Row · game 1 · table of Puma                           Lynx aibaeaqc
            ────────────────────────────────────────────────────────────────────────────────
                            ○                 ● Puma aeaqcaib
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx (you)
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   over tcp
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ╔═════════════════════════════════════════════════════╗
              ├───┼───┼ ║ Leave in the middle of the game? It ends then.  y/n ║
              │   │   │ ╚═════════════════════════════════════════════════════╝
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │(●)│   │   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             It's your turn
             you sit at the table of Puma
             game 1 begins: Puma moves first


             y leave  n play on
            """)
    }
}
