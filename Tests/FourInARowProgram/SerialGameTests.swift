import ChildPrograms
import Testing

/// Plays over a serial cable, without any network.
@Suite struct SerialGameTests {
    @Test("A whole game can be played over a line of 9,600 bits per second")
    func slowLine() throws {
        let cable = try SerialCable(baud: 9_600)
        func start(_ name: String, at end: Int, _ arguments: [String]) throws -> Child {
            try Child(
                "fourinarow",
                arguments + [
                    "--name", name, "--identity", "ephemeral", "--transport",
                    "serial:path=\(cable.ports[end]),baud=9600",
                ], reads: true)
        }
        let host = try start("Puma", at: 0, ["host", "--plain"])
        try host.line(with: "You host a table")
        let guest = try start("Lynx", at: 1, ["join", "Puma", "--plain"])
        try host.line(with: "Lynx wants to play")
        host.type("y")
        // Whoever begins wins with four discs in the first column, since the other one answers in the second.
        let hostBegins = try host.line(where: { $0.contains("turn") }).contains("It's your turn")
        let (first, second) = hostBegins ? (host, guest) : (guest, host)
        for move in 1...4 {
            try first.line(with: "It's your turn", occurrence: move)
            first.type("1")
            guard move < 4 else { break }
            try second.line(with: "It's your turn", occurrence: move)
            second.type("2")
        }
        try first.line(with: "You won")
        try second.line(with: hostBegins ? "Puma won" : "Lynx won")
        guest.type("q")
        host.type("q")
        #expect(try guest.end().status == 0)
        #expect(try host.end().status == 0)
        withExtendedLifetime(cable) {}
    }
}
