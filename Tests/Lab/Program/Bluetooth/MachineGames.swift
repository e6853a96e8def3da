/// Plays the game `fourinarow` over two adapters of one machine.
enum MachineGames {
    static let all = [
        Scenario(
            "game", "two people play over Bluetooth, and so do bots: both sides see the same",
            limit: .seconds(120)
        ) { lab throws(Failure) in
            let puma = try lab.machine.game("Puma", ["host", "--plain"], over: TransportFlags.radio(0))
            let lynx = try lab.machine.game(
                "Lynx", ["join", "Puma", "--plain"], over: TransportFlags.radio(1))
            let game = try TypedGame.begin(puma, lynx, findingWithin: .seconds(40))
            try puma.waitForOutput("Lynx wants to play, over bluetooth.")
            try game.play(Games.moves[0])
            try game.isWon()
            let another = try game.again()
            try another.play(Games.moves[1])
            try another.isWon()
            lynx.type("q")
            try puma.waitForOutput("Lynx left the table.")
            for player in [puma, lynx] { player.signal(15) }
            for player in [puma, lynx] { try player.waitForEnd() }
            try Games.machineGames(
                lab, 3, on: lab.machine, lab.machine, over: TransportFlags.radio(0), TransportFlags.radio(1))
        },
        Scenario(
            "game-two-ways", "a game that begins on the network and, once that is cut, ends on Bluetooth",
            limit: .seconds(120)
        ) { lab throws(Failure) in
            let puma = try lab.machine.game("Puma", ["host", "--plain"], over: TransportFlags.both(0))
            let lynx = try lab.machine.game("Lynx", ["--plain"], over: TransportFlags.both(1))
            try lynx.waitForOutput("Puma, a free seat, over tcp or bluetooth", within: .seconds(40))
            lynx.type("j 1")
            let game = try TypedGame.begin(puma, lynx)
            try puma.waitForOutput("Lynx wants to play, over tcp.")
            game.timeout = .seconds(40)
            let moves = Games.moves[0]
            try game.play(Array(moves.prefix(5)))
            try lab.setNetwork(isUp: false)
            try game.play(moves[5]) { () throws(Failure) in
                for player in [puma, lynx] {
                    try player.waitForOutput("The game goes on over bluetooth.", within: .seconds(40))
                }
            }
            try game.play(Array(moves.dropFirst(6)))
            try game.isWon()
            try lab.check("nobody had left", !puma.hasPrinted("Lynx left the table"))
            try lab.setNetwork(isUp: true)
        },
    ]
}
