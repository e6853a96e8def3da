import FourInARow
import NighCore

/// `bench`: how fast the solver and the highest level are.
enum BenchCommand {
    static func run(positions: Int) {
        print("solver, random positions, each with a table that knows nothing yet")
        print("discs   median ms      max ms   positions each   positions/s")
        for discs in [8, 10, 11, 12, 14, 16, 20, 24] {
            // The earliest ones take seconds each.
            solve(discs: discs, count: discs < 10 ? max(positions / 5, 1) : positions)
        }
        answers(games: positions)
    }

    private static func solve(discs: Int, count: Int) {
        var random = SeededGenerator(seed: UInt64(discs))
        var seconds: [Double] = []
        var visited: UInt64 = 0
        for _ in 0..<count {
            let position = RandomPosition(discs: discs, random: &random)
            var solver = Solver()
            let watch = Stopwatch()
            _ = solver.outcome(of: position.board, toMove: position.toMove)
            seconds.append(watch.seconds)
            visited += solver.positions
        }
        seconds.sort()
        let rate = Double(visited) / seconds.reduce(0, +)
        print(
            Text.right("\(discs)", 5), Text.right(Text.decimal(seconds[count / 2] * 1e3), 11),
            Text.right(Text.decimal(seconds[count - 1] * 1e3), 11),
            Text.right("\(visited / UInt64(count))", 16),
            Text.right("\(Int(rate / 1e5) * 100) k", 13))
    }

    /// The first answers after the book ends, which are the slowest, against opponents that play at random.
    private static func answers(games: Int) {
        var worst: [Int: [Double]] = [:]
        for game in 0..<games {
            var random = SeededGenerator(seed: UInt64(game))
            var bot = Bot(level: 9, seed: 1)
            var board = Board()
            let own: Disc = game % 2 == 0 ? .red : .yellow
            var disc = Disc.red
            while board.winner == nil, board.count < 16 {
                var column = Column.allCases[Int(random.next() % 7)]
                if disc == own {
                    let watch = Stopwatch()
                    column = bot.choose(on: board, as: disc)
                    worst[board.count, default: []].append(watch.seconds)
                }
                if board.drop(disc, in: column) != nil { disc = disc.other }
            }
        }
        print("\nlevel 9, answers against random moves")
        print("discs   median ms      max ms")
        for (discs, seconds) in worst.sorted(by: { $0.key < $1.key }) {
            let sorted = seconds.sorted()
            print(
                Text.right("\(discs)", 5), Text.right(Text.decimal(sorted[sorted.count / 2] * 1e3), 11),
                Text.right(Text.decimal(sorted[sorted.count - 1] * 1e3), 11))
        }
    }
}
