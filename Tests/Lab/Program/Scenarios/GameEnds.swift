import Glibc

/// The game `fourinarow`, with players who leave, are killed, or play twice.
enum GameEnds {
    static let all =
        [
            Scenario(
                "game-guest-killed",
                "the guest is killed in the middle of a game: the host plays on with another"
            ) {
                lab throws(Failure) in
                let (puma, lynx) = try begin(lab)
                lynx.signal(SIGKILL)
                try puma.says("Lynx \(Games.waiting)", within: .seconds(5))
                try puma.says("Lynx left the table.", within: .seconds(20))
                try puma.says("Nobody wins this game.")
                let before = puma.lines.count
                let ocelot = try lynx.host.game("Ocelot", ["join", "Puma", "--plain"])
                let game = try TypedGame.begin(puma, ocelot, after: (before, 0))
                try game.play(Games.moves[0])
                try game.isWon()
            },
            Scenario(
                "game-host-killed",
                "the host is killed in the middle of a game: the guest plays on with another"
            ) {
                lab throws(Failure) in
                let (puma, lynx) = try begin(lab)
                let ocelot = try puma.host.game("Ocelot", ["--plain"])
                try ocelot.says("Table 1: Puma, a game to watch, over tcp")
                puma.signal(SIGKILL)
                try lynx.says("Puma \(Games.waiting)", within: .seconds(5))
                let before = lynx.lines.count
                try lynx.says("Puma is lost: ", within: .seconds(20))
                try lynx.says("You are in the lobby.", after: before)
                ocelot.type("h")
                try lynx.says("Table 1: Ocelot, a free seat, over tcp", after: before, within: .seconds(20))
                lynx.type("j 1")
                let game = try TypedGame.begin(ocelot, lynx, after: (0, before))
                try game.play(Games.moves[0])
                try game.isWon()
                lynx.type("q")
                try ocelot.says("Lynx left the table.")
                // And the other way round: the former guest hosts.
                let marks = (red: lynx.lines.count, yellow: ocelot.lines.count)
                ocelot.type("q")
                try ocelot.says("You are in the lobby.", after: marks.yellow)
                lynx.type("h")
                try ocelot.says("Table 1: Lynx, a free seat, over tcp", after: marks.yellow)
                ocelot.type("j 1")
                let another = try TypedGame.begin(lynx, ocelot, after: marks)
                try another.play(Games.moves[1])
                try another.isWon()
            },
        ]
        + [(SIGINT, "ctrl-c"), (SIGTERM, "sigterm")].map { signal, name in
            Scenario("game-\(name)", "who leaves a table by \(name): the other is told at once") {
                lab throws(Failure) in try leavings(lab, signal)
            }
        } + [
            Scenario("game-input-ends", "what is typed ends in the middle of a game: that is leaving") {
                lab throws(Failure) in
                let (puma, lynx) = try begin(lab)
                lynx.closeInput()
                try puma.says("Lynx left the table.", within: .seconds(2))
                try lynx.ends()
            },
            Scenario("game-twice", "the second program of one user is somebody new, and says so") {
                lab throws(Failure) in
                let host = try lab.host("puma")
                let first = try host.game("First", ["host", "--plain"], as: .own)
                let id = try identity(of: first)
                let second = try host.game("Second", ["join", "First", "--plain"], as: .own)
                try second.says(
                    "Somebody plays as you on this device already, so here you are somebody new.")
                try lab.check("they are two", try identity(of: second) != id)
                let game = try TypedGame.begin(first, second)
                try game.play(Games.moves[0])
                try game.isWon()
                first.signal(SIGTERM)
                try first.ends()
                let third = try host.game("Third", ["--plain"], as: .own)
                try lab.check("who comes later is the first again", try identity(of: third) == id)
            },
        ]

    /// A game between two hosts, after some moves.
    private static func begin(_ lab: Lab) throws(Failure) -> (puma: GameProcess, lynx: GameProcess) {
        let game = try Games.begin(lab)
        try game.play(Array(Games.moves[0].prefix(5)))
        return (game.red, game.yellow)
    }

    private static func identity(of game: GameProcess) throws(Failure) -> Substring {
        let words = try game.says("to those who know you").split(separator: " ")
        guard words.count > 3 else { throw Failure("it does not say who it is") }
        return words[3]
    }

    private static func leavings(_ lab: Lab, _ signal: Int32) throws(Failure) {
        let soon = Duration.seconds(2)
        let (puma, lynx) = try begin(lab)
        lab.step("a guest")
        lynx.signal(signal)
        try puma.says("Lynx left the table.", within: soon)
        try lynx.ends()
        lab.step("a host")
        let ocelot = try lynx.host.game("Ocelot", ["join", "Puma", "--plain"])
        _ = try TypedGame.begin(puma, ocelot)
        puma.signal(signal)
        try ocelot.says("Puma has closed the table.", within: soon)
        try puma.ends()
        lab.step("the machine, at its own table")
        let habits = ["--pause", "100ms", "--level", "2"]
        let robot = try puma.host.game("Robot", ["bot"] + habits)
        try ocelot.says("The table of Puma is gone.")
        try ocelot.says("Robot, a free seat, over tcp")
        ocelot.type("j 1")
        try ocelot.says("You sit at the table of Robot, and play yellow.")
        robot.signal(signal)
        try ocelot.says("Robot has closed the table.", within: soon)
        try robot.ends()
        lab.step("the machine, at somebody's table")
        ocelot.type("h")
        let ghost = try puma.host.game("Ghost", ["bot", "--at", "Ocelot"] + habits)
        try ocelot.says("Ghost wants to play")
        ocelot.type("y")
        try ocelot.says("Ghost sits down.")
        ghost.signal(signal)
        try ocelot.says("Ghost left the table.", within: soon)
        try ghost.ends()
    }
}
