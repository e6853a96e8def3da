import Glibc

/// The game `fourinarow`: played to the end between processes, and with players who leave or play twice.
enum Games {
    /// Whole games, by their columns. In each, the last disc completes four in a row.
    static let moves = ["55764617444213621171134762232235", "3356124217522577473"].map { columns in
        columns.compactMap(\.wholeNumberValue)
    }

    static let all = [
        Scenario(
            "game-embedded", "two hosts play, and see the same; bots play 1,000 games", limit: .seconds(150)
        ) {
            lab in
            let hosts = try ["puma", "lynx"].map { try lab.host($0) }
            try wholeGames(lab, on: hosts, over: "tcp:mdns=embedded", bots: 1_000)
        },
        Scenario("game-daemon", "the same with a daemon each; nothing is announced in the end") { lab in
            let hosts = try ["puma", "lynx"].map { try lab.host($0, daemon: true) }
            var seen: Set<Substring> = []
            var wasSeen = false
            let browser = try hosts[1].start(["avahi-browse", "-p", "_fourinarow._tcp"], mayEnd: true)
            browser.onLine = { _, line in
                if line.hasPrefix("+") { wasSeen = seen.insert(line.dropFirst()).inserted || wasSeen }
                if line.hasPrefix("-") { seen.remove(line.dropFirst()) }
            }
            try wholeGames(lab, on: hosts, over: "tcp:mdns=daemon", bots: 3)
            try lab.wait(for: "nothing to be announced any more") { wasSeen && seen.isEmpty }
        },
        Scenario("game-left", "players leave by signals, or their input ends: the others know at once") {
            try leave($0)
        },
        Scenario("game-twice", "two programs of one user are one person, and can play each other") { lab in
            let host = try lab.host("puma")
            let first = try host.game("First", ["host", "--plain"], as: .own)
            let id = try identity(of: first)
            let second = try host.game("Second", ["join", "First", "--plain"], as: .own)
            try lab.check("they are one person", try identity(of: second) == id)
            try TypedGame.begin(first, second).playToTheEnd(moves[0])
            first.signal(SIGTERM)
            try first.waitForEnd()
            let third = try host.game("Third", ["--plain"], as: .own)
            try lab.check("and so is the third", try identity(of: third) == id)
        },
    ]

    /// Games between two persons and some between machine players, in which nothing goes wrong.
    private static func wholeGames(
        _ lab: Lab, on hosts: [Host], over transport: String, bots count: Int
    ) throws {
        let puma = try hosts[0].game("Puma", ["host", "--plain"], over: transport)
        let lynx = try hosts[1].game("Lynx", ["join", "puma", "--plain"], over: transport)
        try twoGames(puma, lynx) {
            lynx.type("c Thank you!")
            try puma.waitForOutput("Lynx: Thank you!")
        }
        puma.type("q")
        for player in [lynx, puma] {
            try player.waitForOutput("You are in the lobby.")
            player.type("q")
            try player.waitForEnd()
        }
        try machineGames(lab, count, on: hosts, over: [transport, transport])
        for host in hosts {
            let connections = try host.connections()
            try lab.check("no connection stays on \(host.name): \(connections)", connections.isEmpty)
        }
    }

    /// Plays two games between two persons, after which the guest leaves the table.
    static func twoGames(
        _ host: ProgramProcess, _ guest: ProgramProcess, findingWithin limit: Duration = .seconds(15),
        atTheEnd: () throws -> Void = {}
    ) throws {
        let game = try TypedGame.begin(host, guest, findingWithin: limit)
        try game.playToTheEnd(moves[0])
        try game.again().playToTheEnd(moves[1])
        try atTheEnd()
        guest.type("q")
        try host.waitForOutput("\(guest.name) left the table.")
    }

    /// Makes two machine players play `count` games against each other, one of them as the host.
    static func machineGames(_ lab: Lab, _ count: Int, on hosts: [Host], over transports: [String]) throws {
        let habits = ["--level", "2", "--games", "\(count)", "--pause", "0ms", "--seed"]
        let robot = try hosts[0].game("Robot", ["bot"] + habits + ["1"], over: transports[0])
        let ghost = try hosts[1].game(
            "Ghost", ["bot", "--at", "Robot"] + habits + ["2"], over: transports[1])
        try ghost.waitForEnd(within: .seconds(100))
        try robot.waitForEnd()
        let games = robot.games
        try lab.check("\(count) games were played", games.count == count)
        try lab.check("both tell of the same games", games == ghost.games)
        try lab.check(
            "each has a board behind it and somebody won or nobody could",
            games.allSatisfy { game in
                game.count == 7
                    && [": red wins", ": yellow wins", ": a draw"].contains { game[0].hasSuffix($0) }
            })
    }

    /// Begins a game between two hosts.
    private static func beginGame(_ lab: Lab) throws -> TypedGame {
        let puma = try lab.host("puma").game("Puma", ["host", "--plain"])
        let lynx = try lab.host("lynx").game("Lynx", ["join", "Puma", "--plain"])
        return try TypedGame.begin(puma, lynx)
    }

    private static func identity(of game: ProgramProcess) throws -> Substring {
        let words = try game.waitForOutput(", with the ID ").split(separator: " ")
        guard words.count > 6 else { throw Failure("it does not say who it is") }
        return words[6]
    }

    private static func leave(_ lab: Lab) throws {
        let soon = Duration.seconds(2)
        let game = try beginGame(lab)
        try game.play(Array(moves[0].prefix(5)))
        let (puma, lynx) = (game.red, game.yellow)
        lab.step("a guest")
        lynx.signal(SIGINT)
        try puma.waitForOutput("Lynx left the table.", within: soon)
        try lynx.waitForEnd()
        lab.step("a guest whose input ends")
        var before = puma.lines.count
        let serval = try lynx.host.game("Serval", ["join", "Puma", "--plain"])
        _ = try TypedGame.begin(puma, serval, after: (before, 0))
        serval.closeInput()
        try puma.waitForOutput("Serval left the table.", within: soon)
        try serval.waitForEnd()
        lab.step("a host")
        before = puma.lines.count
        let ocelot = try lynx.host.game("Ocelot", ["join", "Puma", "--plain"])
        _ = try TypedGame.begin(puma, ocelot, after: (before, 0))
        puma.signal(SIGTERM)
        try ocelot.waitForOutput("Puma has closed the table.", within: soon)
        try puma.waitForEnd()
        lab.step("the machine, at its own table")
        let habits = ["--pause", "100ms", "--level", "2"]
        let robot = try puma.host.game("Robot", ["bot"] + habits)
        try ocelot.waitForOutput("The table of Puma is gone.")
        try ocelot.waitForOutput("Robot, a free seat, over tcp")
        ocelot.type("j 1")
        try ocelot.waitForOutput("You sit at the table of Robot, and play yellow.")
        robot.signal(SIGINT)
        try ocelot.waitForOutput("Robot has closed the table.", within: soon)
        try robot.waitForEnd()
        lab.step("the machine, at somebody's table")
        ocelot.type("h")
        let ghost = try puma.host.game("Ghost", ["bot", "--at", "Ocelot"] + habits)
        try ocelot.waitForOutput("Ghost wants to play")
        ocelot.type("y")
        try ocelot.waitForOutput("Ghost sits down.")
        ghost.signal(SIGTERM)
        try ocelot.waitForOutput("Ghost left the table.", within: soon)
        try ghost.waitForEnd()
    }
}
