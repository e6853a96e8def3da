import ChildPrograms
import Glibc
import NighTestKit
import Testing

/// Examples/Lobby, a host and its players on GKSession.
@Suite("The lobby of a game", .callsPrograms) struct LobbyProgramTests {
    private let name = "lobby-\(UInt16.random(in: 0 ... .max))"

    /// Runs the program with its lines as they come.
    private func lobby(_ words: String...) throws -> Child {
        let program = try BuiltPackages.build("Examples/Lobby") + "/Lobby"
        return try Child(
            "/usr/bin/stdbuf", ["-oL", program] + words,
            environment: ["LOBBY": name, "NIGH_TRANSPORTS": "tcp:interface=lo,mdns=embedded"], reads: true)
    }

    @Test("seats as many as it has seats, begins a game that nobody finds any more, and ends in good order")
    func game() throws {
        let puma = try lobby("host", "Puma", "2")
        let lynx = try lobby("join", "Lynx")
        try lynx.line(with: "hosts: 1 Puma")
        // A second table comes later, and the list stays sorted.
        let boar = try lobby("host", "Boar", "2")
        try lynx.line(with: "hosts: 1 Boar, 2 Puma")
        lynx.type("2")
        try lynx.line(with: "at the table: Lynx")
        let others = try ["Hare", "Wolf"].map { try lobby("join", $0) }
        for other in others { try other.line(with: "hosts: 1 Boar, 2 Puma") }
        others[0].type("2")
        try lynx.line(with: "at the table: Hare, Lynx")
        others[1].type("2")
        try others[1].line(with: "Puma is not to be joined")
        lynx.type("hello")
        for child in [puma, lynx, others[0]] { try child.line(with: "Lynx: hello") }

        let seen = others[1].lines.count
        puma.type("start")
        for child in [puma, lynx, others[0]] { try child.line(with: "the game begins") }
        try others[1].line(exactly: "hosts: 1 Boar", after: seen)
        let late = try lobby("join", "Late")
        try late.line(exactly: "hosts: 1 Boar", after: 0)

        puma.type("good night")
        puma.type("end")
        for child in [lynx, others[0]] {
            try child.line(with: "Puma: good night")
            try child.line(with: "Puma has gone")
        }
        #expect(try puma.end().status == 0)
        #expect(!late.lines.contains { $0.contains("Puma") })
        for child in [lynx, late, boar] + others { child.type("end") }
        for child in [lynx, late, boar] + others { #expect(try child.end().status == 0) }
    }

    @Test("notices players that are killed and hosts that are stopped")
    func vanishing() throws {
        let puma = try lobby("host", "Puma", "2")
        let guests = try ["Lynx", "Hare"].map { try lobby("join", $0) }
        for guest in guests {
            try guest.line(with: "hosts: 1 Puma")
            guest.type("1")
        }
        try puma.line(with: "at the table: Hare, Lynx")
        let seen = puma.lines.count
        guests[0].send(SIGKILL)
        try puma.line(exactly: "at the table: Hare", after: seen)
        puma.send(SIGSTOP)
        try guests[1].line(with: "Puma has gone")
        puma.send(SIGCONT)
        for child in [puma, guests[1]] { child.type("end") }
        for child in [puma, guests[1]] { #expect(try child.end().status == 0) }
    }
}
