import ChildPrograms
import Testing

/// Plays whole games on real terminals and checks what two people see.
struct TerminalWindowsTests {
    /// Keeps the program off all networks but loopback.
    private static let player = "--identity ephemeral --no-animation --transport tcp:interface=lo"

    /// Two players.
    private struct Players {
        let windows: TerminalWindows
        let number = String(TableNumber.next())
        var host: String { "Puma\(number)" }
        var guest: String { "Lynx\(number)" }

        /// The board and what is around it. The lines below it, which change with time, are left out.
        func screen(_ window: String) throws -> String {
            var lines = try windows.text(window).split(separator: "\n", omittingEmptySubsequences: false)
                .prefix(19).map(String.init)
            while lines.last == "" { lines.removeLast() }
            var text = lines.joined(separator: "\n").replacing(number, with: "0000")
            // The first line of each window ends with a PeerID that differs in each run.
            for window in ["host", "guest"] {
                let first = try windows.text(window).prefix { $0 != "\n" }
                text = text.replacing(first.suffix(8), with: "xxxxxxxx")
            }
            return text
        }

        /// Waits until the window shows `screen`; fails with what it shows instead.
        func see(
            _ screen: String, in window: String, sourceLocation: SourceLocation = #_sourceLocation
        ) throws {
            try? windows.wait("the screen of \(window)") { try self.screen(window) == screen }
            #expect(try self.screen(window) == screen, sourceLocation: sourceLocation)
        }

        /// Opens a table, and sits down at it.
        func meet(_ options: String = "") throws {
            try windows.open("host", "host --name \(host) \(player) \(options)")
            try windows.wait("host", shows: "Waiting for somebody")
            try windows.open("guest", "join \(host) --name \(guest) \(player) \(options)")
            try windows.wait("host", shows: "\(guest) wants to play")
            try windows.press("host", "y")
            for window in ["host", "guest"] { try windows.wait(window, shows: "round trip") }
        }

        /// Plays these columns in turn, the host first. The last one ends the game.
        func play(_ columns: String) throws {
            for (index, column) in columns.enumerated() {
                let mover = index.isMultiple(of: 2) ? "host" : "guest"
                try windows.wait(mover, shows: "It's your turn")
                try windows.press(mover, String(column), "Enter")
                if index < columns.count - 1 { try windows.wait(mover, shows: "'s turn") }
            }
        }
    }

    @Test("Two people find each other, play, and see the same board and the winner")
    func wholeGame() throws {
        let windows = try TerminalWindows()
        let players = Players(windows: windows)
        try players.meet()
        try players.see(Self.begun, in: "host")
        try players.play("4455667")
        try windows.wait("host", shows: "You win")
        try windows.wait("guest", shows: "r play again")
        try players.see(Self.won, in: "host")
        try players.see(Self.lost, in: "guest")
        // The loser moves first in the next game.
        try windows.press("guest", "r")
        try windows.wait("guest", shows: "It's your turn")
        try windows.wait("host", shows: "game 2")
        try windows.press("host", "q", "y")
        try windows.wait("guest", shows: "has closed the table")
        try windows.wait("guest", shows: "Games near you")
        for window in ["host", "guest"] {
            try windows.press(window, "q")
            try windows.wait(window, shows: "ended with 0")
        }
    }

    @Test("A terminal that is too small shows that, and then the game again; a large one has larger cells")
    func sizes() throws {
        let windows = try TerminalWindows()
        let players = Players(windows: windows)
        try players.meet()
        try players.play("44")
        try windows.wait("host", shows: "It's your turn")
        let usual = try players.screen("host")
        try windows.resize("host", 28, 20)
        try windows.wait("host", shows: "Ctrl-C quits.")
        let small = try windows.text("host").drop { $0 == "\n" }
        #expect(
            small
                == "This game needs 29 x 12\ncharacters, and this\nterminal shows 28 x 20.\nCtrl-C quits.")
        try windows.resize("host", 110, 40)
        try windows.wait("host", shows: "┬───────┬")
        try windows.wait("large discs") {
            let large = try windows.text("host")
            return large.contains("│ █████ │") || large.contains("│(█████)│")
        }
        try windows.resize("host", 80, 24)
        try windows.wait("host", shows: "┬───┬")
        try players.see(usual, in: "host")
    }

    @Test("Without Unicode the board is drawn with letters, and Ctrl-C ends the program on every screen")
    func plainLetters() throws {
        let windows = try TerminalWindows()
        let players = Players(windows: windows)
        try players.meet("--ascii")
        try players.play("43")
        let text = try windows.text("host")
        #expect(text.utf8.allSatisfy { $0 < 0x80 })
        for window in ["host", "guest"] {
            try windows.press(window, "C-c")
            try windows.wait(window, shows: "ended with 0")
        }
    }

    static let begun = """
         Four in a Row · game 1 · your table                          Puma0000 xxxxxxxx
        ────────────────────────────────────────────────────────────────────────────────
                        ●                 ● Puma0000 (you)
          ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx0000 xxxxxxxx
          │   │   │   │   │   │   │   │
          ├───┼───┼───┼───┼───┼───┼───┤   over tcp, round trip # ms
          │   │   │   │   │   │   │   │
          ├───┼───┼───┼───┼───┼───┼───┤
          │   │   │   │   │   │   │   │
          ├───┼───┼───┼───┼───┼───┼───┤
          │   │   │   │   │   │   │   │
          ├───┼───┼───┼───┼───┼───┼───┤
          │   │   │   │   │   │   │   │
          ├───┼───┼───┼───┼───┼───┼───┤
          │   │   │   │   │   │   │   │
          └───┴───┴───┴───┴───┴───┴───┘
            1   2   3   4   5   6   7

         It's your turn
        """

    static let won = """
         Four in a Row · game 1 · your table                          Puma0000 xxxxxxxx
        ────────────────────────────────────────────────────────────────────────────────
                                          ● Puma0000 (you)
          ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx0000 xxxxxxxx
          │   │   │   │   │   │   │   │
          ├───┼───┼───┼───┼───┼───┼───┤   over tcp, round trip # ms
          │   │   │   │   │   │   │   │
          ├───┼───┼───┼───┼───┼───┼───┤
          │   │   │   │   │   │   │   │
          ├───┼───┼───┼───┼───┼───┼───┤
          │   │   │   │   │   │   │   │
          ├───┼───┼───┼───┼───┼───┼───┤
          │   │   │   │ ○ │ ○ │ ○ │   │
          ├───┼───┼───┼───┼───┼───┼───┤
          │   │   │   │[●]│[●]│[●]│[●]│
          └───┴───┴───┴───┴───┴───┴───┘
            1   2   3   4   5   6   7

         You win!
        """

    static let lost = """
         Four in a Row · game 1 · table of Puma0000                   Lynx0000 xxxxxxxx
        ────────────────────────────────────────────────────────────────────────────────
                                          ● Puma0000 xxxxxxxx
          ┌───┬───┬───┬───┬───┬───┬───┐   ○ Lynx0000 (you)
          │   │   │   │   │   │   │   │
          ├───┼───┼───┼───┼───┼───┼───┤   over tcp, round trip # ms
          │   │   │   │   │   │   │   │
          ├───┼───┼───┼───┼───┼───┼───┤
          │   │   │   │   │   │   │   │
          ├───┼───┼───┼───┼───┼───┼───┤
          │   │   │   │   │   │   │   │
          ├───┼───┼───┼───┼───┼───┼───┤
          │   │   │   │ ○ │ ○ │ ○ │   │
          ├───┼───┼───┼───┼───┼───┼───┤
          │   │   │   │[●]│[●]│[●]│[●]│
          └───┴───┴───┴───┴───┴───┴───┘
            1   2   3   4   5   6   7

         Puma0000 wins
        """
}
