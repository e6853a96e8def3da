import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite("Screens of a game that is over")
struct EndScreenTests {
    /// Moves with which red wins with a vertical line.
    private let line = "dcdcdcd"

    @Test("The winner sees the four discs marked")
    func won() throws {
        expect(
            screen: try Scene.playing(line, watched: true).text(Scene.puma),
            """
             Four in a Row · game 1 · your table                              Puma aeaqcaib
            ────────────────────────────────────────────────────────────────────────────────
                                              ● Puma (you)
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx aibaeaqc
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   over tcp
              │   │   │   │   │   │   │   │   one watches
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │[●]│   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │[●]│   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │[●]│   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │[●]│   │   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             You win!
             Lynx sits down
             game 1 begins: you move first


             r play again  c chat  ? all keys  q leave
            """)
    }

    @Test("The loser sees the four discs marked")
    func lost() throws {
        expect(
            screen: try Scene.playing(line).text(Scene.lynx),
            """
             Four in a Row · game 1 · table of Puma                           Lynx aibaeaqc
            ────────────────────────────────────────────────────────────────────────────────
                                              ● Puma aeaqcaib
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx (you)
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   over tcp
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │[●]│   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │[●]│   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │[●]│   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │[●]│   │   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             Puma wins
             you sit at the table of Puma
             game 1 begins: Puma moves first


             r play again  c chat  ? all keys  q leave
            """)
    }

    @Test("A watcher sees the four discs marked")
    func watched() throws {
        expect(
            screen: try Scene.playing(line, watched: true).text(Scene.owl),
            """
             Four in a Row · game 1 · table of Puma                            Owl ambqgayd
            ────────────────────────────────────────────────────────────────────────────────
                                              ● Puma aeaqcaib
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   over tcp
              │   │   │   │   │   │   │   │   nobody else watches
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │   │[●]│   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │[●]│   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │[●]│   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │   │   │ ○ │[●]│   │   │   │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             Puma wins
             you watch at the table of Puma



             ? all keys  q leave
            """)
    }

    @Test("All lines that cross are marked")
    func twoLines() throws {
        let scene = try Scene.playing("aabbcacgbgagd")
        expect(
            screen: scene.text(Scene.puma),
            """
             Four in a Row · game 1 · your table                              Puma aeaqcaib
            ────────────────────────────────────────────────────────────────────────────────
                                              ● Puma (you)
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx aibaeaqc
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤   over tcp
              │   │   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │[●]│   │   │   │   │   │   │
              ├───┼───┼───┼───┼───┼───┼───┤
              │ ○ │[●]│   │   │   │   │ ○ │
              ├───┼───┼───┼───┼───┼───┼───┤
              │ ○ │ ○ │[●]│   │   │   │ ○ │
              ├───┼───┼───┼───┼───┼───┼───┤
              │[●]│[●]│[●]│[●]│   │   │ ○ │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             You win!
             Lynx sits down
             game 1 begins: you move first


             r play again  c chat  ? all keys  q leave
            """)
    }

    @Test("A full board is a draw")
    func draw() throws {
        let scene = try Scene.playing("fefagceffaebbaefgfdbbccgcggdgcadaddedbecba")
        expect(
            screen: scene.text(Scene.lynx),
            """
             Four in a Row · game 1 · table of Puma                           Lynx aibaeaqc
            ────────────────────────────────────────────────────────────────────────────────
                                              ● Puma aeaqcaib
              ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx (you)
              │(○)│ ● │ ○ │ ● │ ● │ ○ │ ● │
              ├───┼───┼───┼───┼───┼───┼───┤   over tcp
              │ ● │ ○ │ ○ │ ● │ ○ │ ○ │ ● │
              ├───┼───┼───┼───┼───┼───┼───┤
              │ ● │ ● │ ● │ ○ │ ● │ ● │ ○ │
              ├───┼───┼───┼───┼───┼───┼───┤
              │ ○ │ ○ │ ● │ ○ │ ● │ ○ │ ○ │
              ├───┼───┼───┼───┼───┼───┼───┤
              │ ○ │ ● │ ○ │ ○ │ ● │ ● │ ● │
              ├───┼───┼───┼───┼───┼───┼───┤
              │ ○ │ ○ │ ○ │ ● │ ○ │ ● │ ● │
              └───┴───┴───┴───┴───┴───┴───┘
                1   2   3   4   5   6   7

             It's a draw
             you sit at the table of Puma
             game 1 begins: Puma moves first


             r play again  c chat  ? all keys  q leave
            """)
    }
}
