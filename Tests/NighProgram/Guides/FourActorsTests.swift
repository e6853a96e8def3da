import ChildPrograms
import Glibc
import NighTestKit
import Testing

/// Examples/FourActors, a game whose tables are actors.
@Suite("The game of actors", .callsPrograms) struct FourActorsTests {
    @Test("passes its own tests, in virtual time")
    func own() throws { try BuiltPackages.test("FourActors", in: "Examples/FourActors") }

    @Test("is played by two processes, and a third one watches")
    func processes() throws {
        let program = try BuiltPackages.build("Examples/FourActors") + "/FourActors"
        let users = (0..<3).map { _ in TemporaryFolder() }
        func start(_ user: TemporaryFolder, _ words: String...) throws -> Child {
            try Child(
                "/usr/bin/stdbuf",
                ["-oL", program] + words + ["--transport", "tcp:interface=lo,mdns=embedded"],
                environment: ["XDG_DATA_HOME": user.path], reads: true)
        }
        let host = try start(users[0], "host", "--name", "Puma", "--bot")
        try host.line(with: "waiting for a player")
        let watch = try start(users[1], "watch")
        try watch.line(with: "watching the table of Puma")
        let guest = try start(users[2], "join")
        try guest.line(with: "your turn: type a column")
        for (typed, answer) in [("eight", "there is no such column"), ("1", "red's turn")] {
            guest.type(typed)
            try guest.line(with: answer)
        }
        try watch.line(with: "red's turn")
        guest.send(SIGINT)
        for program in [guest, host, watch] { #expect(try program.end().status == 0) }
        for program in [host, watch] { #expect(program.lines.contains("yellow has left: nobody has won")) }
    }
}
