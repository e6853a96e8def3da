import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite("The same screens on other terminals")
struct DrawingStyleTests {
    private let plainText = ScreenStyle(isUnicode: false, animates: false)
    /// Moves with which red wins with a vertical line.
    private let line = "dcdcdcd"

    @Test("Without Unicode the screen is plain ASCII, and the colours are letters")
    func ascii() throws {
        let text = try Scene.playing(line, style: plainText).text(Scene.puma)
        expect(
            screen: text,
            """
             Four in a Row - game 1 - your table                              Puma aeaqcaib
            --------------------------------------------------------------------------------
                                              X Puma (you)
              +---+---+---+---+---+---+---+   O Lynx aibaeaqc
              |   |   |   |   |   |   |   |
              +---+---+---+---+---+---+---+   over tcp
              |   |   |   |   |   |   |   |
              +---+---+---+---+---+---+---+
              |   |   |   |[X]|   |   |   |
              +---+---+---+---+---+---+---+
              |   |   | O |[X]|   |   |   |
              +---+---+---+---+---+---+---+
              |   |   | O |[X]|   |   |   |
              +---+---+---+---+---+---+---+
              |   |   | O |[X]|   |   |   |
              +---+---+---+---+---+---+---+
                1   2   3   4   5   6   7

             You win!
             Lynx sits down
             game 1 begins: you move first


             r play again  c chat  ? all keys  q leave
            """)
        #expect(text.utf8.allSatisfy { $0 < 0x80 })
    }

    @Test("On a large terminal the board is large, and everything is centred")
    func large() throws {
        let size = TerminalSize(columns: 124, rows: 44)
        expect(
            screen: try Scene.playing(line).text(Scene.lynx, size),
            """

               Four in a Row · game 1 · table of Puma                                                                   Lynx aibaeaqc
              ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
                                                                            ● Puma aeaqcaib
                ┌───────┬───────┬───────┬───────┬───────┬───────┬───────┐   ○ Lynx (you)
                │       │       │       │       │       │       │       │
                │       │       │       │       │       │       │       │   over tcp
                │       │       │       │       │       │       │       │
                ├───────┼───────┼───────┼───────┼───────┼───────┼───────┤
                │       │       │       │       │       │       │       │
                │       │       │       │       │       │       │       │
                │       │       │       │       │       │       │       │
                ├───────┼───────┼───────┼───────┼───────┼───────┼───────┤
                │       │       │       │ ▄███▄ │       │       │       │
                │       │       │       │[█████]│       │       │       │
                │       │       │       │ ▀███▀ │       │       │       │
                ├───────┼───────┼───────┼───────┼───────┼───────┼───────┤
                │       │       │ ▄▀▀▀▄ │ ▄███▄ │       │       │       │
                │       │       │ █   █ │[█████]│       │       │       │
                │       │       │ ▀▄▄▄▀ │ ▀███▀ │       │       │       │
                ├───────┼───────┼───────┼───────┼───────┼───────┼───────┤
                │       │       │ ▄▀▀▀▄ │ ▄███▄ │       │       │       │
                │       │       │ █   █ │[█████]│       │       │       │
                │       │       │ ▀▄▄▄▀ │ ▀███▀ │       │       │       │
                ├───────┼───────┼───────┼───────┼───────┼───────┼───────┤
                │       │       │ ▄▀▀▀▄ │ ▄███▄ │       │       │       │
                │       │       │ █   █ │[█████]│       │       │       │
                │       │       │ ▀▄▄▄▀ │ ▀███▀ │       │       │       │
                └───────┴───────┴───────┴───────┴───────┴───────┴───────┘
                    1       2       3       4       5       6       7

               Puma wins
               you sit at the table of Puma
               game 1 begins: Puma moves first








               r play again  c chat  ? all keys  q leave

            """)
    }

    @Test("Without Unicode, a large terminal also has a large board")
    func largeASCII() throws {
        let text = try Scene.playing(line, style: plainText).text(
            Scene.lynx, TerminalSize(columns: 100, rows: 34))
        expect(
            screen: text,
            #"""
             Four in a Row - game 1 - table of Puma                                               Lynx aibaeaqc
            ----------------------------------------------------------------------------------------------------
                                                                          X Puma aeaqcaib
              +-------+-------+-------+-------+-------+-------+-------+   O Lynx (you)
              |       |       |       |       |       |       |       |
              |       |       |       |       |       |       |       |   over tcp
              |       |       |       |       |       |       |       |
              +-------+-------+-------+-------+-------+-------+-------+
              |       |       |       |       |       |       |       |
              |       |       |       |       |       |       |       |
              |       |       |       |       |       |       |       |
              +-------+-------+-------+-------+-------+-------+-------+
              |       |       |       |  \ /  |       |       |       |
              |       |       |       |[  X  ]|       |       |       |
              |       |       |       |  / \  |       |       |       |
              +-------+-------+-------+-------+-------+-------+-------+
              |       |       | /---\ |  \ /  |       |       |       |
              |       |       | |   | |[  X  ]|       |       |       |
              |       |       | \---/ |  / \  |       |       |       |
              +-------+-------+-------+-------+-------+-------+-------+
              |       |       | /---\ |  \ /  |       |       |       |
              |       |       | |   | |[  X  ]|       |       |       |
              |       |       | \---/ |  / \  |       |       |       |
              +-------+-------+-------+-------+-------+-------+-------+
              |       |       | /---\ |  \ /  |       |       |       |
              |       |       | |   | |[  X  ]|       |       |       |
              |       |       | \---/ |  / \  |       |       |       |
              +-------+-------+-------+-------+-------+-------+-------+
                  1       2       3       4       5       6       7
             Puma wins
             you sit at the table of Puma
             game 1 begins: Puma moves first

             r play again  c chat  ? all keys  q leave
            """#)
        #expect(text.utf8.allSatisfy { $0 < 0x80 })
    }
}
