import FourInARow
import Measuring
import NighCore

/// Measures how fast the solver and the highest level are: the command `bench`.
enum BenchCommand {
    static func run(positions: Int) {
        print("solver, random positions, each with an empty table")
        print("discs   median ms      max ms   positions each   positions/s")
        for discs in [8, 10, 11, 12, 14, 16, 20, 24] {
            // Positions with fewer discs take seconds each.
            solve(discs: discs, count: discs < 10 ? max(positions / 5, 1) : positions)
        }
        answers(count: positions * 10)
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
        let rate = Double(visited) / seconds.reduce(0, +)
        print(
            Figures.right("\(discs)", 5), medianAndGreatest(seconds),
            Figures.right("\(visited / UInt64(count))", 16),
            Figures.right("\(Int(rate / 1e5) * 100) k", 13))
    }

    /// Measures the first answers after the book ends, which take longest, on every n-th of all these boards.
    private static func answers(count: Int) {
        let frontier = OpeningBook.standard.frontier
        let step = max(frontier.count / count, 1)
        print(
            "\nlevel 9, the first answer without the book, for 1 in \(step) of the \(frontier.count) positions after it"
        )
        print("discs   positions   median ms      max ms")
        for (discs, boards) in Dictionary(grouping: frontier, by: \.board.count).sorted(by: {
            $0.key < $1.key
        }) {
            var seconds: [Double] = []
            for index in stride(from: 0, to: boards.count, by: step) {
                var bot = Bot(level: 9, seed: 1)
                let watch = Stopwatch()
                _ = bot.choose(on: boards[index].board, as: boards[index].toMove)
                seconds.append(watch.seconds)
            }
            print(
                Figures.right("\(discs)", 5), Figures.right("\(seconds.count)", 11),
                medianAndGreatest(seconds))
        }
    }

    /// Returns the median and the greatest value in milliseconds, each in its column.
    private static func medianAndGreatest(_ seconds: [Double]) -> String {
        let sorted = seconds.sorted()
        return [sorted[sorted.count / 2], sorted[sorted.count - 1]]
            .map { Figures.right(Figures.fixed($0 * 1e3, decimals: 2), 11) }.joined(separator: " ")
    }
}
