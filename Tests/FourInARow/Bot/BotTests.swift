import FourInARow
import Testing

@testable import fourinarow_solver

@Suite struct BotTests {
    @Test(arguments: 2...9) func `Every level that thinks completes a line, low levels most of the time`(
        level: Int
    ) throws {
        // Red has b1, c1, d1 with a1 taken; e1 wins.
        let (board, disc) = try position("bacbdb")
        var answers: [String: Int] = [:]
        for seed in 0..<(level < 6 ? 40 : 2) as Range<UInt64> {
            var bot = Bot(level: level, seed: seed)
            answers[bot.choose(on: board, as: disc).description, default: 0] += 1
        }
        if level >= 6 { #expect(answers == ["e": 2]) }
        // A careless player sometimes overlooks it.
        if level <= 3 { #expect(answers.count > 1) }
        #expect((answers["e"] ?? 0) * 2 > answers.values.reduce(0, +))
    }

    @Test(arguments: 6...9) func `Every level that is not careless blocks a line of the opponent`(level: Int)
        throws
    {
        // Red has d1, d2, d3; yellow must take d4.
        let (board, disc) = try position("dadbd")
        for seed in 0..<4 as Range<UInt64> {
            var bot = Bot(level: level, seed: seed)
            #expect(bot.choose(on: board, as: disc).description == "d")
        }
    }

    @Test(arguments: 1...5)
    func `The same seed gives the same answers, and seeds vary the play of low levels`(level: Int) throws {
        func game(_ seed: UInt64) -> [Column] {
            var bots = [Bot(level: level, seed: seed), Bot(level: level, seed: seed + 100)]
            var board = Board()
            var columns: [Column] = []
            while board.winner == nil, !board.isFull {
                let disc: Disc = columns.count % 2 == 0 ? .red : .yellow
                let column = bots[columns.count % 2].choose(on: board, as: disc)
                // A chosen column must have room. Otherwise the game could not continue.
                guard board.drop(disc, in: column) != nil else { break }
                columns.append(column)
            }
            #expect(board.winner != nil || board.isFull)
            return columns
        }
        let games = (0..<8).map { game($0) }
        #expect(games == (0..<8).map { game($0) })
        #expect(Set(games).count > 4)
    }

    @Test(arguments: 3...6) func `A level beats the one two below it`(level: Int) {
        let match = Match(level, against: level - 2, games: 30)
        #expect(match.won > 2 * match.lost, "\(match.won) won, \(match.lost) lost")
    }

    @Test func `A copy of a bot plays independently, on any thread`() async throws {
        let (board, disc) = try position("dd")
        var bot = Bot(level: 2, seed: 3)
        let copies = (0..<4).map { _ in bot }
        let expected = (0..<10).map { _ in bot.choose(on: board, as: disc) }
        await withTaskGroup(of: [Column].self) { group in
            for copy in copies {
                group.addTask {
                    var copy = copy
                    return (0..<10).map { _ in copy.choose(on: board, as: disc) }
                }
            }
            for await answers in group { #expect(answers == expected) }
        }
    }
}
