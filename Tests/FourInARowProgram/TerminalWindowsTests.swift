import ChildPrograms
import Testing

/// Plays a whole game on real terminals and checks what two people see.
struct TerminalWindowsTests {
    /// Keeps the program off all networks but loopback.
    private static let player = "--identity ephemeral --no-animation --transport tcp:interface=lo"

    /// The board and what is around it. The lines below it, which change with time, are left out, and names and IDs
    /// that differ in each run are replaced.
    private func screen(_ windows: TerminalWindows, _ number: String) throws -> String {
        let lines = try windows.text("host").split(separator: "\n", omittingEmptySubsequences: false)
        var text = lines.prefix(19).joined(separator: "\n")
        for window in ["host", "guest"] {
            let title = try windows.text(window).prefix { $0 != "\n" }
            text = text.replacing(title.suffix(8), with: "xxxxxxxx")
        }
        return text.replacing(number, with: "0000")
    }

    @Test func `Two people find each other, play at any size and without Unicode, and see who wins`() throws {
        let windows = try TerminalWindows()
        let number = String(TableNumber.next())
        try windows.open("host", "host --name Puma\(number) \(Self.player)")
        try windows.wait("host", shows: "Waiting for somebody")
        try windows.open("guest", "join Puma\(number) --name Lynx\(number) \(Self.player) --ascii")
        try windows.wait("host", shows: "Lynx\(number) wants to play")
        try windows.press("host", "y")
        for window in ["host", "guest"] { try windows.wait(window, shows: "round trip") }
        for (index, column) in "4455667".enumerated() {
            let mover = index.isMultiple(of: 2) ? "host" : "guest"
            try windows.wait(mover, shows: "It's your turn")
            if index == 2 { try resize(windows) }
            try windows.press(mover, String(column), "Enter")
            if index < 6 { try windows.wait(mover, shows: "'s turn") }
        }
        try windows.wait("host", shows: "You win")
        try windows.wait("guest", shows: "r play again")
        #expect(try windows.text("guest").contains("Puma\(number) wins"))
        #expect(try windows.text("guest").allSatisfy(\.isASCII))
        // A screen may be read while it is being drawn.
        var seen = ""
        try windows.wait("a screen that does not change") {
            let before = seen
            seen = try screen(windows, number)
            return seen == before
        }
        let path = "FourInARowProgram/Snapshots/window-won.txt"
        #expect(try Snapshots.difference(of: "\(seen)\n", from: path) == nil)
        // The loser moves first in the next game.
        try windows.press("guest", "r")
        try windows.wait("guest", shows: "It's your turn")
        try windows.wait("host", shows: "game 2")
        try windows.press("host", "q", "y")
        try windows.wait("guest", shows: "has closed the table")
        try windows.wait("guest", shows: "Games near you")
        try windows.press("host", "q")
        try windows.press("guest", "C-c")
        for window in ["host", "guest"] { try windows.wait(window, shows: "ended with 0") }
    }

    /// Makes the host's terminal too small, large, and as it was.
    private func resize(_ windows: TerminalWindows) throws {
        try windows.resize("host", 28, 20)
        try windows.wait("host", shows: "This game needs 29 x 12")
        try windows.resize("host", 110, 40)
        try windows.wait("host", shows: "┬───────┬")
        try windows.wait("large discs") {
            let large = try windows.text("host")
            return large.contains("│ █████ │") || large.contains("│(█████)│")
        }
        try windows.resize("host", 80, 24)
        try windows.wait("host", shows: "┬───┬")
        try windows.wait("host", shows: "It's your turn")
    }
}
