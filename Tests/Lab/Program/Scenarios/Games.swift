import Glibc

/// The game `fourinarow`, played to the end between processes.
enum Games {
    /// Whole games, by their columns. In each, the last disc completes four in a row.
    static let moves = ["55764617444213621171134762232235", "3356124217522577473"].map { columns in
        columns.compactMap(\.wholeNumberValue)
    }

    static let all =
        [
            Scenario("game-embedded", "two hosts without daemons play, and see the same after each move") {
                lab throws(Failure) in
                try wholeGames(lab, on: lab.host("puma"), lab.host("lynx"), over: "tcp:mdns=embedded")
            },
            Scenario("game-daemon", "the same with a daemon each") { lab throws(Failure) in
                let lynx = try lab.host("lynx", daemon: true)
                var seen: Set<Substring> = []
                var wasSeen = false
                let browser = try lynx.start(["avahi-browse", "-p", "_fourinarow._tcp"], mayEnd: true)
                browser.onLine = { _, line in
                    if line.hasPrefix("+") { wasSeen = seen.insert(line.dropFirst()).inserted || wasSeen }
                    if line.hasPrefix("-") { seen.remove(line.dropFirst()) }
                }
                try wholeGames(lab, on: lab.host("puma", daemon: true), lynx, over: "tcp:mdns=daemon")
                try lab.wait(for: "nothing to be announced any more") { wasSeen && seen.isEmpty }
            },
            Scenario(
                "game-thousand",
                "two bots play 1,000 games over TCP: all end, and both sides agree",
                limit: .seconds(120)
            ) { lab throws(Failure) in
                let puma = try lab.host("puma")
                let start = lab.journal.now
                try machineGames(lab, 1_000, on: puma, puma)
                lab.step("that took \(Journal.seconds(lab.journal.now - start)) s")
            },
            Scenario(
                "game-link-down-5s",
                "a plug pulled for 5 s in the middle of a game: nobody has left, and the move made meanwhile counts"
            ) { lab throws(Failure) in
                let game = try begin(lab)
                let middle = 6
                try game.play(Array(moves[0].prefix(middle)))
                try game.red.host.setLink(isUp: false)
                game.timeout = .seconds(20)
                try game.play(moves[0][middle]) { () throws(Failure) in
                    // Time is the subject.
                    try lab.pass(.seconds(5))
                    try game.red.host.setLink(isUp: true)
                }
                try game.play(Array(moves[0].dropFirst(middle + 1)))
                try game.isWon()
                for side in [game.red, game.yellow] {
                    try lab.check(
                        "\(side.name) shows no lost connection",
                        !side.hasPrinted("No connection to") && !side.hasPrinted("left"))
                }
            },
        ]
        + [("host", 6), ("guest", 7)].map { mover, middle in
            Scenario(
                "game-cut-5s-\(mover)",
                "connections are cut for 5 s while the \(mover) moves: both are notified, the game continues"
            ) { lab throws(Failure) in
                let game = try begin(lab)
                try game.play(Array(moves[0].prefix(middle)))
                let start = lab.journal.now
                // Resets pass, so that both sides notice.
                try game.red.host.filter(in: "tcp flags & rst == 0 reject with tcp reset")
                try game.play(moves[0][middle]) { () throws(Failure) in
                    for (side, other) in [(game.red, game.yellow), (game.yellow, game.red)] {
                        try side.waitForOutput(waiting(for: other.name))
                    }
                    // Time is the subject. The cut lasts 5 s in all: the sides wait for 10 s from its beginning.
                    try lab.pass(.seconds(5) + start - lab.journal.now)
                    for side in [game.red, game.yellow] {
                        try lab.check("nobody is back before there is a way", !side.hasPrinted("is back"))
                    }
                    try game.red.host.filter()
                    for (side, other) in [(game.red, game.yellow), (game.yellow, game.red)] {
                        try side.waitForOutput("\(other.name) is back.")
                    }
                }
                try game.play(Array(moves[0].dropFirst(middle + 1)))
                try game.isWon()
            }
        }

    /// What a player is told when the link to the player with this name breaks.
    static func waiting(for name: String) -> String {
        "No connection to \(name): waiting 10 s for them to come back."
    }

    /// Games between two persons and some between machine players, in which nothing goes wrong.
    private static func wholeGames(
        _ lab: Lab, on one: Host, _ other: Host, over transport: String
    ) throws(Failure) {
        let puma = try one.game("Puma", ["host", "--plain"], over: transport)
        let lynx = try other.game("Lynx", ["join", "puma", "--plain"], over: transport)
        let game = try TypedGame.begin(puma, lynx)
        try game.play(moves[0])
        try game.isWon()
        let another = try game.again()
        try another.play(moves[1])
        try another.isWon()
        lynx.type("c Thank you!")
        try puma.waitForOutput("Lynx: Thank you!")
        lynx.type("q")
        try puma.waitForOutput("Lynx left the table.")
        puma.type("q")
        for player in [lynx, puma] { try player.waitForOutput("You are in the lobby.") }
        for player in [lynx, puma] {
            player.type("q")
            try player.waitForEnd()
        }
        try machineGames(lab, 3, on: one, other, over: transport)
        for host in [one, other] {
            let connections = try Addresses.connections(of: host)
            try lab.check("no connection stays on \(host.name): \(connections)", connections.isEmpty)
        }
    }

    /// Makes two machine players play `count` games against each other, one of them as the host.
    static func machineGames(
        _ lab: Lab, _ count: Int, on one: Host, _ other: Host, over transport: String = "tcp:mdns=embedded",
        _ otherTransport: String? = nil
    ) throws(Failure) {
        let habits = ["--level", "2", "--games", "\(count)", "--pause", "0ms", "--seed"]
        let robot = try one.game("Robot", ["bot"] + habits + ["1"], over: transport)
        let ghost = try other.game(
            "Ghost", ["bot", "--at", "Robot"] + habits + ["2"], over: otherTransport ?? transport)
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
    static func begin(_ lab: Lab) throws(Failure) -> TypedGame {
        let puma = try lab.host("puma").game("Puma", ["host", "--plain"])
        let lynx = try lab.host("lynx").game("Lynx", ["join", "Puma", "--plain"])
        return try TypedGame.begin(puma, lynx)
    }
}
