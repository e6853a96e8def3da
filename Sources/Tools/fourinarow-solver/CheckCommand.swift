import FourInARow
import Measuring
import NighCore

/// Compares everything that must agree, and prints up to ten disagreements: the command `check`.
struct CheckCommand {
    private var disagreements: [String] = []

    /// Runs all checks, and returns whether everything agrees.
    static func run(games: Int) -> Bool {
        var check = CheckCommand()
        check.stage("\(games) random games, board against reference board") { $0.playRandomGames(games) }
        check.stage("outcomes of positions, solver against reference solver") { $0.compareSolvers() }
        check.stage("answers of the book, computed again") { $0.repeatAnswers() }
        check.stage("games of level 9 against careless and careful players") { $0.playPerfectGames() }
        check.stage("each level against the one two below") { $0.playMatches() }
        for disagreement in check.disagreements.prefix(10) { print(disagreement) }
        print(check.disagreements.isEmpty ? "all agree" : "\(check.disagreements.count) disagreements")
        return check.disagreements.isEmpty
    }

    private mutating func stage(_ name: String, _ body: (inout Self) -> String) {
        let watch = Stopwatch()
        let result = body(&self)
        print("\(name): \(result) (\(Figures.fixed(watch.seconds, decimals: 2)) s)")
    }

    private mutating func playRandomGames(_ games: Int) -> String {
        var (red, yellow, nobody) = (0, 0, 0)
        for seed in 0..<games {
            let game = RandomGame(seed: UInt64(seed), isThorough: seed % 256 == 0)
            if let difference = game.difference { disagreements.append("game \(seed): \(difference)") }
            switch game.board.winner {
            case .red: red += 1
            case .yellow: yellow += 1
            case nil: nobody += 1
            }
        }
        return "\(red) won by red, \(yellow) by yellow, \(nobody) by nobody"
    }

    /// Compares outcomes from 18 discs on. With fewer discs, the reference solver takes too long.
    private mutating func compareSolvers() -> String {
        var random = SeededGenerator(seed: 1)
        var solver = Solver()
        var counts: [Outcome: Int] = [:]
        var given = 0
        for discs in [18, 20, 22, 24, 27, 30, 33, 36, 38, 40, 41] {
            for _ in 0..<40 {
                let position = RandomPosition(discs: discs, random: &random)
                var referenceSolver = ReferenceSolver(limit: 60_000)
                guard let expected = referenceSolver.outcome(position.reference, toMove: position.toMove)
                else {
                    given += 1
                    continue
                }
                guard let outcome = solver.outcome(of: position.board, toMove: position.toMove) else {
                    continue
                }
                counts[outcome, default: 0] += 1
                if outcome.rawValue != expected {
                    let found = "\(outcome) for \(position.toMove), not \(expected)"
                    disagreements.append("\(found), on\n\(position.board.text)")
                }
            }
        }
        return
            "\(counts[.win] ?? 0) wins, \(counts[.draw] ?? 0) draws, \(counts[.loss] ?? 0) losses, \(given) too slow"
    }

    /// Repeats answers of the book with 10 discs. With fewer discs, this would take too long.
    private mutating func repeatAnswers() -> String {
        let answers = OpeningBook.standard.recheck(with: Solver(), discs: 10, every: 50)
        for board in answers.different {
            disagreements.append("the book has another answer on\n\(board.text)")
        }
        if answers.count == 0 { disagreements.append("the book has no answers with 10 discs") }
        return "\(answers.count) with 10 discs"
    }

    private mutating func playPerfectGames() -> String {
        var solver = Solver()
        var (won, drawn, lost, judged) = (0, 0, 0, 0)
        for seed in 0..<24 {
            let game = PerfectGame(seed: UInt64(seed), solver: &solver)
            disagreements += game.faults
            judged += game.movesJudged
            switch game.winner {
            case game.bot: won += 1
            case nil: drawn += 1
            default: lost += 1
            }
        }
        return "\(won) won, \(drawn) drawn, \(lost) lost; \(judged) moves judged"
    }

    private mutating func playMatches() -> String {
        var results: [String] = []
        for level in 3...8 {
            let match = Match(level, against: level - 2, games: 40)
            results.append("\(match.won):\(match.lost)")
            if match.won <= match.lost {
                disagreements.append("level \(level) does not beat level \(level - 2)")
            }
        }
        return results.joined(separator: " ")
    }
}
