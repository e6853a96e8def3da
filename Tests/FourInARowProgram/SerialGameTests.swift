import ChildPrograms
import Testing

/// Plays over a serial cable, without any network.
@Suite struct SerialGameTests {
    /// Two people at one table, at the two ends of a cable. The host begins.
    private struct Players {
        let cable: SerialCable
        let host: Child
        let guest: Child

        init(baud: Int) throws {
            cable = try SerialCable(baud: baud)
            let ports = cable.ports
            func start(_ name: String, at end: Int, _ arguments: [String]) throws -> Child {
                try Child(
                    "fourinarow",
                    arguments + [
                        "--plain", "--name", name, "--identity", "ephemeral", "--transport",
                        "serial:path=\(ports[end]),baud=\(baud)",
                    ], reads: true)
            }
            host = try start("Puma", at: 0, ["host"])
            try host.line(with: "You host a table")
            guest = try start("Lynx", at: 1, ["join", "Puma"])
            try host.line(with: "Lynx wants to play")
            host.type("y")
        }

        /// Makes the host drop a disc into the first column, and the guest into the second one.
        func play(move: Int) throws {
            try host.line(with: "It's your turn", occurrence: move)
            host.type("1")
            try guest.line(with: "It's your turn", occurrence: move)
            guest.type("2")
        }

        /// Lets the host win with its fourth disc.
        func end() throws {
            try host.line(with: "It's your turn", occurrence: 4)
            host.type("1")
            try host.line(with: "You win!")
            try guest.line(with: "Puma wins")
            for child in [guest, host] {
                child.closeInput()
                #expect(try child.end().status == 0)
            }
        }
    }

    @Test("A whole game can be played over a line of 9,600 bits per second")
    func slowLine() throws {
        let players = try Players(baud: 9_600)
        for move in 1...3 { try players.play(move: move) }
        try players.end()
    }

    @Test("A cable that is pulled until both players notice ends no game")
    func pulledCable() throws {
        let players = try Players(baud: 115_200)
        for move in 1...2 { try players.play(move: move) }
        players.cable.isPulled = true
        try players.host.line(with: "waiting", "for them to come back")
        try players.guest.line(with: "waiting", "for them to come back")
        players.cable.isPulled = false
        try players.host.line(with: "Lynx is back")
        try players.guest.line(with: "Puma is back")
        try players.play(move: 3)
        try players.end()
    }
}
