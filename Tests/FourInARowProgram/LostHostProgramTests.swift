import ChildPrograms
import Glibc
import Testing

/// Plays at a table of five programs, over TCP on loopback, whose host is killed.
struct LostHostProgramTests {
    /// Starts the program. Keeps it off all networks but loopback.
    private static func start(_ name: String, _ arguments: String) throws -> Child {
        let all = "\(arguments) --name \(name) --transport tcp:interface=lo --identity ephemeral"
        return try Child("fourinarow", all.split(separator: " ").map(String.init), reads: true)
    }

    /// The line of a machine about its game, without the name of the game.
    private func moves(_ line: String) -> Substring {
        line.drop { $0 != "," }.drop { $0 != ":" }.dropFirst(2).prefix { $0 != ":" }
    }

    @Test func `The host is killed, and its guest and a machine that watched play on`() throws {
        let number = TableNumber.next()
        let names = ["Wren\(number)", "Swift\(number)"]
        let machine = "bot --at Puma\(number) --pause 400ms --level 3 --games 1"
        let host = try Self.start("Puma\(number)", "host --plain")
        try host.line(with: "You host a table")
        let guest = try Self.start("Lynx\(number)", machine)
        try host.line(with: "Lynx\(number) wants to play")
        host.type("y")
        try host.line(with: "It's your turn")
        // They come one after the other, so that the order is known.
        let watcher = try Self.start("Owl\(number)", "watch Puma\(number) --plain")
        try host.line(with: "One watches")
        let machines = try names.enumerated().map { index, name in
            let machine = try Self.start(name, "\(machine) --watch --seed \(index)")
            try host.line(with: "\(index + 2) watch")
            return machine
        }
        for (index, column) in ["1", "2"].enumerated() {
            host.type(column)
            // The guest has answered.
            try host.line(with: "It's your turn", occurrence: index + 2)
        }
        try watcher.line(with: "dropped a disc", occurrence: 4)
        host.send(SIGKILL)
        let left = "Puma\(number) left; "
        try guest.line(with: left, "you now host the table. Waiting for a player.")
        try watcher.line(with: left, "Lynx\(number) now hosts the table. Waiting for a player.")
        try watcher.line(with: "You watch at the table of Lynx\(number).")
        // The person came first, and is asked first. On a busy computer, the person may come to the new table more than
        // 5 s after the guest hosts it. Then a machine may have the seat already.
        let question = "Take the seat? y or n"
        let first = try watcher.line(where: { line in
            line.contains(question) || names.contains { line.hasPrefix("\($0) ") }
        })
        let isAsked = first.contains(question)
        if isAsked { watcher.type("n") }
        let seated = try guest.line(with: " takes the seat: the game goes on")
        if isAsked { try watcher.line(with: seated) }
        let successor = machines[seated.hasPrefix("\(names[0]) ") ? 0 : 1]
        let result = try guest.line(with: "game 1, red first: ")
        #expect(try successor.line(with: "game 1, red first: ") == result)
        let moves = moves(result)
        #expect(moves.hasPrefix("a") && moves.dropFirst(2).hasPrefix("b") && moves.count > 7, "\(result)")
        for child in [guest, successor] {
            let (status, errors) = try child.end()
            #expect(status == 0 && errors.isEmpty, "\(errors)")
        }
    }
}
