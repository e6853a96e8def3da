import ChildPrograms
import Testing

struct SerialGameTests {
    @Test func `A whole game is played over a slow serial cable that is pulled meanwhile`() throws {
        let cable = try SerialCable(baud: 9_600)
        func start(_ name: String, at end: Int, _ arguments: [String]) throws -> Child {
            try Child(
                "fourinarow",
                arguments + [
                    "--plain", "--name", name, "--identity", "ephemeral", "--transport",
                    "serial:path=\(cable.ports[end]),baud=9600",
                ], reads: true)
        }
        let host = try start("Puma", at: 0, ["host"])
        try host.line(with: "You host a table")
        let guest = try start("Lynx", at: 1, ["join", "Puma"])
        try host.line(with: "Lynx wants to play")
        host.type("y")
        for move in 1...4 {
            try host.line(with: "It's your turn", occurrence: move)
            if move == 2 {
                cable.isPulled = true
                for child in [host, guest] { try child.line(with: "waiting", "for them to come back") }
                cable.isPulled = false
                try host.line(with: "Lynx is back")
                try guest.line(with: "Puma is back")
            }
            host.type("1")
            if move == 4 { break }
            try guest.line(with: "It's your turn", occurrence: move)
            guest.type("2")
        }
        try host.line(with: "You win!")
        try guest.line(with: "Puma wins")
        for child in [guest, host] {
            child.closeInput()
            #expect(try child.end().status == 0)
        }
    }
}
