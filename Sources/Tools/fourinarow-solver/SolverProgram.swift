import Arguments
import FourInARow
import Glibc
import Measuring
import ProgramSupport

/// The `fourinarow-solver` command: compares the board and the bot of the game with independent results, and measures
/// them.
enum SolverProgram {
    static func main(_ arguments: [String]) {
        let options: Options
        do {
            options = try Options(arguments)
        } catch {
            LineOutput.printError("\(error); see fourinarow-solver --help", by: "fourinarow-solver")
            exit(2)
        }
        switch options {
        case .check(let games): exit(CheckCommand.run(games: games) ? 0 : 1)
        case .bench(let positions): BenchCommand.run(positions: positions)
        case .book(let bits): exit(BookCommand.run(bits: bits) ? 0 : 1)
        case .matches(let games): showMatches(games)
        case .help: print(Options.helpText)
        }
    }

    private static func showMatches(_ games: Int) {
        print("levels     won   drawn    lost   slowest answer, ms")
        for level in 3...9 {
            let match = Match(level, against: level - 2, games: games)
            print(
                " \(level) : \(level - 2)", Figures.right("\(match.won)", 7),
                Figures.right("\(match.drawn)", 7),
                Figures.right("\(match.lost)", 7),
                Figures.right(Figures.fixed(match.slowest * 1e3, decimals: 2), 20))
        }
    }
}
