/// A game of two persons at two `fourinarow --plain` who type their moves. After each move, both boards
/// are compared with the expected one.
final class TypedGame {
    let red: GameProcess
    let yellow: GameProcess

    /// The time that a move may take to reach the other side.
    var timeout = Duration.seconds(10)
    private var columns: [[Character]] = Array(repeating: [], count: 7)
    /// The lines that each side printed about moves, in order.
    private var toldRed: [String] = []
    private var toldYellow: [String] = []
    private var turn: Int
    /// The number of lines that each side had printed before the game began.
    private let before: (red: Int, yellow: Int)

    /// Red hosts the table. Both have already been told who begins.
    private init(
        _ red: GameProcess, _ yellow: GameProcess, yellowBegins: Bool, after: (red: Int, yellow: Int)
    ) {
        self.red = red
        self.yellow = yellow
        turn = yellowBegins ? 1 : 0
        before = after
    }

    /// Lets `yellow` in, which was told to sit down at the table of `red`.
    static func begin(
        _ red: GameProcess, _ yellow: GameProcess, after: (red: Int, yellow: Int) = (0, 0),
        findingWithin limit: Duration = .seconds(15)
    ) throws(Failure) -> TypedGame {
        try red.waitForOutput("\(yellow.name) wants to play, over ", after: after.red, within: limit)
        red.type("y")
        try red.waitForOutput("\(yellow.name) sits down.", after: after.red)
        try yellow.waitForOutput("You sit at the table of \(red.name), and play yellow.", after: after.yellow)
        try red.waitForOutput("begins: you move first.", after: after.red)
        try yellow.waitForOutput("begins: \(red.name) moves first.", after: after.yellow)
        return TypedGame(red, yellow, yellowBegins: false, after: after)
    }

    /// Makes yellow ask for another game, in which it moves first.
    func again() throws(Failure) -> TypedGame {
        let before = (red: red.lines.count, yellow: yellow.lines.count)
        yellow.type("r")
        try yellow.waitForOutput("begins: you move first.", after: before.yellow)
        try red.waitForOutput("begins: \(yellow.name) moves first.", after: before.red)
        return TypedGame(red, yellow, yellowBegins: true, after: before)
    }

    /// Plays these columns, counted from 1, each by the side whose turn it is.
    func play(_ moves: [Int]) throws(Failure) {
        for column in moves { try play(column, meanwhile: {}) }
    }

    /// Plays a column by the side whose turn it is, runs `meanwhile`, and checks both boards.
    func play(_ column: Int, meanwhile: () throws(Failure) -> Void) throws(Failure) {
        let isRed = turn == 0
        let mover = isRed ? red : yellow
        mover.type("\(column)")
        try meanwhile()
        columns[column - 1].append(isRed ? "R" : "Y")
        turn = 1 - turn
        let place = "dropped a disc into column \(column), row \(columns[column - 1].count)."
        toldRed.append("\(isRed ? "You" : yellow.name) \(place)")
        toldYellow.append("\(isRed ? red.name : "You") \(place)")
        for (side, told, before) in [(red, toldRed, before.red), (yellow, toldYellow, before.yellow)] {
            guard let last = told.last else { continue }
            try side.waitForOutput(last, after: before, within: timeout)
            let moves = Array(side.lines[before...]).filter { $0.contains("dropped a disc into") }
            guard moves == told else { throw Failure("\(side.name) was told of \(moves), not of \(told)") }
            let count = side.lines.count
            side.type("b")
            try side.waitForOutput("R is red, Y is yellow.", after: count)
            let board = Array(side.lines[count...].drop { $0 != Self.numbers }.dropFirst().prefix(6))
            guard board == rows else { throw Failure("\(side.name) sees the board \(board), not \(rows)") }
        }
    }

    /// Waits until both are told that the side that moved last has won.
    func isWon() throws(Failure) {
        let (winner, loser) = turn == 1 ? (red, yellow) : (yellow, red)
        try winner.waitForOutput("You win!", after: turn == 1 ? before.red : before.yellow)
        try loser.waitForOutput("\(winner.name) wins.", after: turn == 1 ? before.yellow : before.red)
    }

    private static let numbers = "1 2 3 4 5 6 7"

    private var rows: [String] {
        (0..<6).reversed().map { row in
            columns.map { row < $0.count ? String($0[row]) : "." }.joined(separator: " ")
        }
    }
}
