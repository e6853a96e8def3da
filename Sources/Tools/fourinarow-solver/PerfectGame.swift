import FourInARow
import NighCore

/// A game of the highest level against another player, and the mistakes that the highest level made.
struct PerfectGame {
    /// The colour that the highest level plays.
    let bot: Disc
    private(set) var board = Board()
    /// The mistakes, in words.
    private(set) var faults: [String] = []
    /// The number of the highest level's moves that the solver judged.
    private(set) var movesJudged = 0

    /// With fewer discs, the solver would take too long to judge a move.
    private static let leastDiscsJudged = 12

    var winner: Disc? { board.winner }

    /// Plays the game of this seed. The other side is another level of the bot, or drops discs at random.
    init(seed: UInt64, solver: inout Solver) {
        var random = SeededGenerator(seed: seed)
        bot = seed % 2 == 0 ? .red : .yellow
        var perfect = Bot(level: 9, seed: seed)
        let otherLevel = Int(seed / 2 % 9)
        var other = otherLevel == 0 ? nil : Bot(level: otherLevel, seed: seed)
        var mustWin = bot == .red
        var disc = Disc.red
        while board.winner == nil, !board.isFull {
            let column: Column
            if disc == bot {
                column = perfect.choose(on: board, as: disc)
                judge(column, &solver)
            } else if board.count == 0 {
                // The other side plays each opening in turn. All but the three in the middle lose.
                column = Column.allCases[Int(seed / 2 % 7)]
                mustWin = ![2, 3, 4].contains(column.index)
            } else {
                let any = Column.allCases.filter { board.hasRoom(in: $0) }
                column = other?.choose(on: board, as: disc) ?? any[Int(random.next() % UInt64(any.count))]
            }
            if board.drop(disc, in: column) == nil { faults.append("seed \(seed): no room in \(column)") }
            disc = disc.other
        }
        if mustWin, board.winner != bot {
            faults.append("seed \(seed): a won game was not won\n\(board.text)")
        }
    }

    /// Checks that the move keeps the outcome of the position.
    private mutating func judge(_ column: Column, _ solver: inout Solver) {
        guard board.count >= Self.leastDiscsJudged else { return }
        var after = board
        guard after.drop(bot, in: column) != nil else { return }
        let before = solver.outcome(of: board, toMove: bot)
        let kept: Outcome? =
            after.winner != nil
            ? .win
            : after.isFull ? .draw : solver.outcome(of: after, toMove: bot.other)?.forOpponent
        movesJudged += 1
        if before != kept { faults.append("\(column) worsens the outcome on\n\(board.text)") }
    }
}
