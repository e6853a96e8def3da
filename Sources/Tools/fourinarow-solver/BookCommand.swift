import FourInARow
import Glibc
import Measuring
import ProgramLife

/// `book`: makes the bot's book, and prints it as the Swift file that holds it.
enum BookCommand {
    /// What everybody who has solved the game found for the first move in each column.
    private static let openings: [Outcome] = [.loss, .loss, .draw, .win, .draw, .loss, .loss]

    /// Prints the file; false if the solver is wrong about the first move.
    static func run(bits: Int) -> Bool {
        let watch = Stopwatch()
        var solver = Solver(bucketBits: bits)
        for (column, expected) in zip(Column.allCases, openings) {
            var board = Board()
            guard board.drop(.red, in: column) != nil else { return false }
            let found = solver.outcome(of: board, toMove: .yellow)?.forOpponent
            guard found == expected else {
                tell(
                    "the first move \(column) is said to be a \(expected), and found to be \(found as Any)")
                return false
            }
            tell("the first move \(column) is a \(expected), \(Int(watch.seconds)) s")
        }
        var discsTold = -1
        let digits = OpeningBook.make(with: solver) { discs, waiting in
            guard discs != discsTold else { return }
            discsTold = discs
            tell("\(waiting + 1) positions with \(discs) discs to answer, \(Int(watch.seconds)) s")
        }
        printFile(digits)
        tell("\(digits.utf8.count) digits, \(Int(watch.seconds)) s")
        return true
    }

    private static func tell(_ line: String) { LineOutput.write(line + "\n", to: STDERR_FILENO) }

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
