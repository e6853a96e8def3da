/// A game of two persons who sit at two `fourinarow --plain` and type their moves. After each move both boards are looked at, and
/// must be as they are here.
final class TypedGame {
    let red: GameProcess
    let yellow: GameProcess

    /// How long a move may take to reach the other side.
    var patience = Duration.seconds(10)
    private var columns: [[Character]] = Array(repeating: [], count: 7)
    /// What each was told of moves, in turn.
    private var toldRed: [String] = []
    private var toldYellow: [String] = []
    private var turn: Int
    /// How many lines each had said before the game began.
    private let before: (red: Int, yellow: Int)

    /// Red hosts a table. Whoever begins has been told so already.
    private init(
        _ red: GameProcess, _ yellow: GameProcess, yellowBegins: Bool, after: (red: Int, yellow: Int)
    ) {
        self.red = red
        self.yellow = yellow
        turn = yellowBegins ? 1 : 0
        before = after
    }

    /// Has `yellow`, who has been told to sit down at the table of `red`, be let in.
    static func begin(
        _ red: GameProcess, _ yellow: GameProcess, after: (red: Int, yellow: Int) = (0, 0),
        findingWithin limit: Duration = .seconds(15)
    ) throws(Failure) -> TypedGame {
        try red.says("\(yellow.name) wants to play, over ", after: after.red, within: limit)
        red.type("y")
        try red.says("\(yellow.name) sits down.", after: after.red)
        try yellow.says("You sit at the table of \(red.name), and play yellow.", after: after.yellow)
        try red.says("begins: you move first.", after: after.red)
        try yellow.says("begins: \(red.name) moves first.", after: after.yellow)
        return TypedGame(red, yellow, yellowBegins: false, after: after)
    }

    /// Has yellow ask for another game, in which it moves first.
    func again() throws(Failure) -> TypedGame {
        let before = (red: red.lines.count, yellow: yellow.lines.count)
        yellow.type("r")
        try yellow.says("begins: you move first.", after: before.yellow)
        try red.says("begins: \(yellow.name) moves first.", after: before.red)
        return TypedGame(red, yellow, yellowBegins: true, after: before)
    }

    /// Has whoever's turn it is drop a disc into each of these columns, one after the other, counted from 1.
    func play(_ moves: [Int]) throws(Failure) {
        for column in moves { try play(column, meanwhile: {}) }
    }

    /// Has whoever's turn it is drop a disc, lets something happen, and looks at both boards.
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
            try side.says(last, after: before, within: patience)
            let moves = Array(side.lines[before...]).filter { $0.contains("dropped a disc into") }
            guard moves == told else { throw Failure("\(side.name) was told of \(moves), not of \(told)") }
            let count = side.lines.count
            side.type("b")
            try side.says("R is red, Y is yellow.", after: count)
            let board = Array(side.lines[count...].drop { $0 != Self.numbers }.dropFirst().prefix(6))
            guard board == rows else { throw Failure("\(side.name) sees the board \(board), not \(rows)") }
        }
    }

    /// Waits until both are told that whoever moved last has won.
    func isWon() throws(Failure) {
        let (winner, loser) = turn == 1 ? (red, yellow) : (yellow, red)
        try winner.says("You win!", after: turn == 1 ? before.red : before.yellow)
        try loser.says("\(winner.name) wins.", after: turn == 1 ? before.yellow : before.red)
    }

    private static let numbers = "1 2 3 4 5 6 7"

    private var rows: [String] {
        (0..<6).reversed().map { row in
            columns.map { row < $0.count ? String($0[row]) : "." }.joined(separator: " ")
        }
    }
}
