import Glibc

/// The `fourinarow-solver` command: holds the board and the bot of the game to what is known otherwise.
enum SolverProgram {
    static func main(_ arguments: [String]) {
        let difference = RandomGame(seed: 1, isThorough: true).difference
        if let difference { print(difference) }
        exit(difference == nil ? 0 : 1)
    }
}
