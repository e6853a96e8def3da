import Glibc

/// The game `fourinarow`, with players who leave, are killed, or play twice.
enum GameEnds {
    static let all =
        [
            Scenario(
                "game-guest-killed",
                "the guest is killed in the middle of a game: the host continues with another player"
            ) {
                lab throws(Failure) in
                let (puma, lynx) = try begin(lab)
                lynx.signal(SIGKILL)
                try puma.waitForOutput(Games.waiting(for: "Lynx"), within: .seconds(5))
                try puma.waitForOutput("Lynx left the table.", within: .seconds(20))
                try puma.waitForOutput("Nobody wins this game.")
                let before = puma.lines.count
                let ocelot = try lynx.host.game("Ocelot", ["join", "Puma", "--plain"])
                let game = try TypedGame.begin(puma, ocelot, after: (before, 0))
                try game.play(Games.moves[0])
                try game.isWon()
            },
            Scenario(
                "game-host-killed",
                "the host is killed in the middle of a game: the guest continues with another player"
            ) {
                lab throws(Failure) in
                let (puma, lynx) = try begin(lab)
                let ocelot = try puma.host.game("Ocelot", ["--plain"])
                try ocelot.waitForOutput("Table 1: Puma, a game to watch, over tcp")
                puma.signal(SIGKILL)
                try lynx.waitForOutput(Games.waiting(for: "Puma"), within: .seconds(5))
                let before = lynx.lines.count
                try lynx.waitForOutput("The connection to Puma is lost: ", within: .seconds(20))
                try lynx.waitForOutput("You are in the lobby.", after: before)
                ocelot.type("h")
                try lynx.waitForOutput(
                    "Table 1: Ocelot, a free seat, over tcp", after: before, within: .seconds(20))
                lynx.type("j 1")
                let game = try TypedGame.begin(ocelot, lynx, after: (0, before))
                try game.play(Games.moves[0])
                try game.isWon()
                lynx.type("q")
                try ocelot.waitForOutput("Lynx left the table.")
                // And the other way round: the former guest hosts.
                let marks = (red: lynx.lines.count, yellow: ocelot.lines.count)
                ocelot.type("q")
                try ocelot.waitForOutput("You are in the lobby.", after: marks.yellow)
                lynx.type("h")
                try ocelot.waitForOutput("Table 1: Lynx, a free seat, over tcp", after: marks.yellow)
                ocelot.type("j 1")
                let another = try TypedGame.begin(lynx, ocelot, after: marks)
                try another.play(Games.moves[1])
                try another.isWon()
            },
        ]
        + [(SIGINT, "ctrl-c"), (SIGTERM, "sigterm")].map { signal, name in
            Scenario("game-\(name)", "a player leaves a table by \(name): the other is notified at once") {
                lab throws(Failure) in try leavings(lab, signal)
            }
        } + [
            Scenario("game-input-ends", "the input ends in the middle of a game: the player leaves") {
                lab throws(Failure) in
                let (puma, lynx) = try begin(lab)
                lynx.closeInput()
                try puma.waitForOutput("Lynx left the table.", within: .seconds(2))
                try lynx.waitForEnd()
            },
            Scenario("game-twice", "two programs of one user are the same person, and can play each other") {
                lab throws(Failure) in
                let host = try lab.host("puma")
                let first = try host.game("First", ["host", "--plain"], as: .own)
                let id = try identity(of: first)
                let second = try host.game("Second", ["join", "First", "--plain"], as: .own)
                try lab.check("they are one person", try identity(of: second) == id)
                let game = try TypedGame.begin(first, second)
                try game.play(Games.moves[0])
                try game.isWon()
                first.signal(SIGTERM)
                try first.waitForEnd()
                let third = try host.game("Third", ["--plain"], as: .own)
                try lab.check("and so is the third", try identity(of: third) == id)
            },
        ]

    /// A game between two hosts, after some moves.
    private static func begin(_ lab: Lab) throws(Failure) -> (puma: GameProcess, lynx: GameProcess) {
        let game = try Games.begin(lab)
        try game.play(Array(Games.moves[0].prefix(5)))
        return (game.red, game.yellow)
    }

    private static func identity(of game: GameProcess) throws(Failure) -> Substring {
        let words = try game.waitForOutput(", with the ID ").split(separator: " ")
        guard words.count > 6 else { throw Failure("it does not say who it is") }
        return words[6]
    }

    private static func leavings(_ lab: Lab, _ signal: Int32) throws(Failure) {
        let soon = Duration.seconds(2)
        let (puma, lynx) = try begin(lab)
        lab.step("a guest")
        lynx.signal(signal)
        try puma.waitForOutput("Lynx left the table.", within: soon)
        try lynx.waitForEnd()
        lab.step("a host")
        let ocelot = try lynx.host.game("Ocelot", ["join", "Puma", "--plain"])
        _ = try TypedGame.begin(puma, ocelot)
        puma.signal(signal)
        try ocelot.waitForOutput("Puma has closed the table.", within: soon)
        try puma.waitForEnd()
        lab.step("the machine, at its own table")
        let habits = ["--pause", "100ms", "--level", "2"]
        let robot = try puma.host.game("Robot", ["bot"] + habits)
        try ocelot.waitForOutput("The table of Puma is gone.")
        try ocelot.waitForOutput("Robot, a free seat, over tcp")
        ocelot.type("j 1")
        try ocelot.waitForOutput("You sit at the table of Robot, and play yellow.")
        robot.signal(signal)
        try ocelot.waitForOutput("Robot has closed the table.", within: soon)
        try robot.waitForEnd()
        lab.step("the machine, at somebody's table")
        ocelot.type("h")
        let ghost = try puma.host.game("Ghost", ["bot", "--at", "Ocelot"] + habits)
        try ocelot.waitForOutput("Ghost wants to play")
        ocelot.type("y")
        try ocelot.waitForOutput("Ghost sits down.")
        ghost.signal(signal)
        try ocelot.waitForOutput("Ghost left the table.", within: soon)
        try ghost.waitForEnd()
    }
}
