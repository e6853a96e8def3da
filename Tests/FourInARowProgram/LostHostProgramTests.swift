import ChildPrograms
import Glibc
import Testing

/// Plays at a table of up to five programs, over TCP on loopback, whose host is killed or leaves.
@Suite struct LostHostProgramTests {
    /// Keeps the program off all networks but loopback.
    private static let loopback = ["--transport", "tcp:interface=lo", "--identity", "ephemeral"]

    /// A host, its guest, a person who watches, and machines that watch.
    private struct Programs {
        private let number = TableNumber.next()
        let host: Child
        let guest: Child
        let watcher: Child
        let machines: [Child]

        func name(_ name: String) -> String { "\(name)\(number)" }

        init(machines names: [String] = ["Wren", "Swift"]) throws {
            let number = number
            func start(_ name: String, _ arguments: [String]) throws -> Child {
                try Child(
                    "fourinarow", arguments + ["--name", "\(name)\(number)"] + LostHostProgramTests.loopback,
                    reads: true)
            }
            let machine = ["--pause", "400ms", "--level", "3", "--games", "1"]
            host = try start("Puma", ["host", "--plain"])
            try host.line(with: "You host a table")
            guest = try start("Lynx", ["bot", "--at", "Puma\(number)"] + machine)
            try host.line(with: "Lynx\(number) wants to play")
            host.type("y")
            try host.line(with: "It's your turn")
            // They come one after the other, so that the order is known.
            watcher = try start("Owl", ["watch", "Puma\(number)", "--plain"])
            try host.line(with: "One watches")
            var machines: [Child] = []
            for (index, name) in names.enumerated() {
                machines.append(
                    try start(
                        name, ["bot", "--watch", "--at", "Puma\(number)", "--seed", "\(index)"] + machine))
                try host.line(with: "\(index + 2) watch")
            }
            self.machines = machines
        }

        /// Makes the host play these columns, each on its turn.
        func play(_ columns: String) throws {
            for (index, column) in columns.enumerated() {
                try host.line(with: "It's your turn", occurrence: index + 1)
                host.type(String(column))
            }
            // The guest has answered.
            try host.line(with: "It's your turn", occurrence: columns.count + 1)
            try watcher.line(with: "dropped a disc", occurrence: 2 * columns.count)
        }
    }

    /// The line of a machine about its game, without the name of the game.
    private func moves(_ line: String) -> Substring {
        line.drop { $0 != "," }.drop { $0 != ":" }.dropFirst(2).prefix { $0 != ":" }
    }

    @Test(
        "The host is killed: the guest hosts the table, and a machine that watched plays the game to its end")
    func killed() throws {
        let programs = try Programs()
        try programs.play("12")
        programs.host.send(SIGKILL)
        let (guest, watcher) = (programs.name("Lynx"), programs.watcher)
        let left = "\(programs.name("Puma")) left; "
        try programs.guest.line(with: left, "you now host the table. Waiting for a player.")
        try watcher.line(with: left, "\(guest) now hosts the table. Waiting for a player.")
        try watcher.line(with: "You watch at the table of \(guest).")
        // The person came first, and is asked first. On a busy computer, the person may come to the new table more than
        // 5 s after the guest hosts it. Then a machine may have the seat already.
        let question = "Take the seat? y or n"
        let names = ["Wren", "Swift"].map { "\(programs.name($0)) " }
        let first = try watcher.line(where: { line in
            line.contains(question) || names.contains { line.hasPrefix($0) }
        })
        let isAsked = first.contains(question)
        if isAsked { watcher.type("n") }
        let seated = try programs.guest.line(with: " takes the seat: the game goes on")
        if isAsked { try watcher.line(with: seated) }
        let machine = programs.machines[seated.hasPrefix(names[0]) ? 0 : 1]
        let result = try programs.guest.line(with: "game 1, red first: ")
        #expect(try machine.line(with: "game 1, red first: ") == result)
        let moves = moves(result)
        #expect(moves.hasPrefix("a") && moves.dropFirst(2).hasPrefix("b") && moves.count > 7, "\(result)")
        for child in [programs.guest, machine] {
            let (status, errors) = try child.end()
            #expect(status == 0 && errors.isEmpty, "\(errors)")
        }
    }

    @Test("The host quits: a person who watched takes the seat at once, in the colour of the host")
    func left() throws {
        // Without machines, which might get the seat before the person comes to the new table.
        let programs = try Programs(machines: [])
        try programs.play("1")
        programs.host.type("q")
        let watcher = programs.watcher
        try watcher.line(with: "Take the seat? y or n")
        watcher.type("y")
        try watcher.line(with: "You take the seat: the game goes on.")
        // The machine that hosts now sees the same colours.
        try watcher.line(with: "It's your turn: 1 to 7.")
        watcher.type("x")
        let result = try programs.guest.line(with: "game 1, red first: a")
        #expect(result.hasSuffix(": red resigned"), "\(result)")
        // The former host looks at the tables, and could watch there.
        try programs.host.line(with: "\(programs.name("Lynx")), ")
        try watcher.line(with: "You resigned: \(programs.name("Lynx")) wins.")
    }
}
