import Arguments

/// A command line of `fourinarow-solver` after parsing.
enum Options {
    case check(games: Int)
    case bench(positions: Int)
    case book(bits: Int)
    case matches(games: Int)
    case help

    static let helpText = """
        usage: fourinarow-solver check [--games N] | bench [--positions N] | matches [--games N] | book [--bits N]

        Compares the board and the bot of the game with independent results, and measures them.

          check    random games on the board and on a reference board, positions solved by the solver and by a
                   reference solver, games of the bot; the exit status is 0 if all agree
            --games N      how many random games (default 1000000)
          bench    how fast positions with many and with few discs are solved, and the bot's first answers after its book
            --positions N  how many of each (default 100)
          matches  each level of the bot against the one two below it
            --games N      how many of each (default 200)
          book     makes the bot's opening book, and prints it as a Swift file; this takes a while
            --bits N       memory for it, 2 to the power of N times eight bytes (default 27, from 22 to 30)
        """

    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        guard let command = rest.popFirst() else { throw UsageError("a command is missing") }
        switch command {
        case "--help", "-h": self = .help
        case "check": self = .check(games: try Self.number("--games", &rest, 0...100_000_000) ?? 1_000_000)
        case "bench": self = .bench(positions: try Self.number("--positions", &rest, 1...100_000) ?? 100)
        case "matches": self = .matches(games: try Self.number("--games", &rest, 1...100_000) ?? 200)
        case "book": self = .book(bits: try Self.number("--bits", &rest, 22...30) ?? 27)
        default: throw UsageError("there is no command \"\(command)\"")
        }
        if let extra = rest.first { throw UsageError("unknown argument \"\(extra)\"") }
    }

    private static func number(
        _ option: String, _ rest: inout ArraySlice<String>, _ range: ClosedRange<Int>
    ) throws(UsageError) -> Int? {
        guard rest.first == option else { return nil }
        rest.removeFirst()
        guard let text = rest.popFirst() else { throw UsageError("\(option) needs a number") }
        guard let number = Int(text), range.contains(number) else {
            throw UsageError(
                "\(option) takes a number from \(range.lowerBound) to \(range.upperBound), not \"\(text)\"")
        }
        return number
    }
}
