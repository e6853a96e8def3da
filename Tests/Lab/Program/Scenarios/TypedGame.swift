/// A game of two persons at two `fourinarow --plain` who type their moves. After each move, both boards
/// are compared with the expected one.
final class TypedGame {
    /// The host of the table.
    let red: ProgramProcess
    let yellow: ProgramProcess
    /// The time that a move may take to reach the other side.
    var timeout = Duration.seconds(10)

    private var columns: [[Character]] = Array(repeating: [], count: 7)
    /// The lines that each side printed about moves, in order.
    private var printed: [[String]] = [[], []]
    /// The side whose turn it is: 0 is red.
    private var turn: Int
    /// The number of lines that each side had printed before the game began.
    private let before: [Int]

    private var sides: [ProgramProcess] { [red, yellow] }

    /// Both have already been told who begins.
    private init(_ red: ProgramProcess, _ yellow: ProgramProcess, turn: Int, after before: [Int]) {
        self.red = red
        self.yellow = yellow
        self.turn = turn
        self.before = before
    }

    /// Lets `yellow` in, which was told to sit down at the table of `red`.
    static func begin(
        _ red: ProgramProcess, _ yellow: ProgramProcess, after: (red: Int, yellow: Int) = (0, 0),
        findingWithin limit: Duration = .seconds(15)
    ) throws -> TypedGame {
        try red.waitForOutput("\(yellow.name) wants to play, over ", after: after.red, within: limit)
        red.type("y")
        try red.waitForOutput("\(yellow.name) sits down.", after: after.red)
        try yellow.waitForOutput("You sit at the table of \(red.name), and play yellow.", after: after.yellow)
        try red.waitForOutput("begins: you move first.", after: after.red)
        try yellow.waitForOutput("begins: \(red.name) moves first.", after: after.yellow)
        return TypedGame(red, yellow, turn: 0, after: [after.red, after.yellow])
    }

    /// Makes yellow ask for another game, in which it moves first.
    func again() throws -> TypedGame {
        let before = sides.map(\.lines.count)
        yellow.type("r")
        try yellow.waitForOutput("begins: you move first.", after: before[1])
        try red.waitForOutput("begins: \(yellow.name) moves first.", after: before[0])
        return TypedGame(red, yellow, turn: 1, after: before)
    }

    /// Plays these columns, counted from 1, each by the side whose turn it is.
    func play(_ moves: [Int]) throws { for column in moves { try play(column) {} } }

    /// Plays a column by the side whose turn it is, runs `meanwhile`, and checks both boards.
    func play(_ column: Int, meanwhile: () throws -> Void) throws {
        let mover = turn
        sides[mover].type("\(column)")
        try meanwhile()
        columns[column - 1].append(mover == 0 ? "R" : "Y")
        turn = 1 - mover
        let place = "dropped a disc into column \(column), row \(columns[column - 1].count)."
        for (number, side) in sides.enumerated() {
            let last = "\(number == mover ? "You" : sides[mover].name) \(place)"
            printed[number].append(last)
            try side.waitForOutput(last, after: before[number], within: timeout)
            let moves = side.lines[before[number]...].filter { $0.contains("dropped a disc into") }
            guard moves == printed[number] else {
                throw Failure("\(side.name) was told of \(moves), not of \(printed[number])")
            }
            let count = side.lines.count
            side.type("b")
            try side.waitForOutput("R is red, Y is yellow.", after: count)
            let board = Array(side.lines[count...].drop { $0 != "1 2 3 4 5 6 7" }.dropFirst().prefix(6))
            guard board == rows else { throw Failure("\(side.name) sees the board \(board), not \(rows)") }
        }
    }

    /// Waits until both are told that the side that moved last has won.
    func isWon() throws {
        try sides[1 - turn].waitForOutput("You win!", after: before[1 - turn])
        try sides[turn].waitForOutput("\(sides[1 - turn].name) wins.", after: before[turn])
    }

    /// Plays these columns, the last of which wins.
    func playToTheEnd(_ moves: [Int]) throws {
        try play(moves)
        try isWon()
    }

    private var rows: [String] {
        (0..<6).reversed().map { row in
            columns.map { row < $0.count ? String($0[row]) : "." }.joined(separator: " ")
        }
    }
}
