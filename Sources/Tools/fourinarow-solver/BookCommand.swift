import FourInARow
import Glibc
import Measuring
import ProgramSupport

/// Makes the bot's book, and prints it as the Swift file that contains it: the command `book`.
enum BookCommand {
    /// The outcomes of the first move in each column, as everybody who has solved the game found them.
    private static let openings: [Outcome] = [.loss, .loss, .draw, .win, .draw, .loss, .loss]

    /// Prints the file. Returns false if the solver is wrong about the first move.
    static func run(bits: Int) -> Bool {
        let watch = Stopwatch()
        var solver = Solver(bucketBits: bits)
        for (column, expected) in zip(Column.allCases, openings) {
            var board = Board()
            guard board.drop(.red, in: column) != nil else { return false }
            let found = solver.outcome(of: board, toMove: .yellow)?.forOpponent
            guard found == expected else {
                report(
                    "the first move \(column) should be a \(expected), but the solver finds \(found as Any)")
                return false
            }
            report("the first move \(column) is a \(expected), \(Int(watch.seconds)) s")
        }
        var discsReported = -1
        let digits = OpeningBook.make(with: solver) { discs, waiting in
            guard discs != discsReported else { return }
            discsReported = discs
            report("\(waiting + 1) positions with \(discs) discs to answer, \(Int(watch.seconds)) s")
        }
        printFile(digits)
        report("\(digits.utf8.count) digits, \(Int(watch.seconds)) s")
        return true
    }

    private static func report(_ line: String) { LineOutput.write(line + "\n", to: STDERR_FILENO) }

    private static func printFile(_ digits: String) {
        print(
            """
            /// The answers of `OpeningBook.standard`; `fourinarow-solver book` prints this file.
            enum OpeningMoves {
                static let digits = \"\"\"
            """)
        var rest = Substring(digits)
        while !rest.isEmpty {
            print("        \(rest.prefix(100))")
            rest = rest.dropFirst(100)
        }
        print(
            """
                    \"\"\"
            }
            """)
    }
}
