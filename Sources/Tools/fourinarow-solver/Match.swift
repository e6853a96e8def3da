import FourInARow
import Measuring

/// A match between two levels of the bot, which take turns to begin.
struct Match {
    private(set) var won = 0
    private(set) var drawn = 0
    private(set) var lost = 0
    /// The longest time that one answer took, in seconds.
    private(set) var slowest = 0.0

    /// Plays this many games. `won` and `lost` count from the side of `level`.
    init(_ level: Int, against other: Int, games: Int, seed: UInt64 = 1) {
        for game in 0..<games {
            let seed = seed &* 1_000 &+ UInt64(game)
            let begins = game % 2 == 0
            var bots: [Disc: Bot] = [
                .red: Bot(level: begins ? level : other, seed: seed),
                .yellow: Bot(level: begins ? other : level, seed: seed ^ 0xFFFF),
            ]
            switch play(&bots) {
            case nil: drawn += 1
            case .red?: if begins { won += 1 } else { lost += 1 }
            case .yellow?: if begins { lost += 1 } else { won += 1 }
            }
        }
    }

    private mutating func play(_ bots: inout [Disc: Bot]) -> Disc? {
        var board = Board()
        var disc = Disc.red
        while board.winner == nil, !board.isFull {
            let start = Stopwatch()
            let column = bots[disc]!.choose(on: board, as: disc)
            slowest = max(slowest, start.seconds)
            guard board.drop(disc, in: column) != nil else { return disc.other }
            disc = disc.other
        }
        return board.winner
    }
}
