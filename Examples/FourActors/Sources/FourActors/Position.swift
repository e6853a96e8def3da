/// A board with its discs. A position from a peer may be any; reading it never fails.
public struct Position: Codable, Hashable, Sendable {
    /// A disc, and the side that plays with it.
    public enum Disc: String, Codable, Sendable {
        case red, yellow

        /// The other side.
        public var other: Disc { self == .red ? .yellow : .red }
    }

    /// How a game ended.
    public enum Ending: Codable, Hashable, Sendable {
        case won(Disc)
        case drawn
        case left(Disc)
    }

    /// The discs in each column, from the bottom up.
    private var columns = [[Disc]](repeating: [], count: 7)
    /// How the game ended; nil while it goes on.
    public internal(set) var ending: Ending?

    /// The number of discs on the board.
    public var count: Int { columns.reduce(0) { $0 + $1.count } }

    /// The side that is to drop a disc.
    public var turn: Disc { count.isMultiple(of: 2) ? .red : .yellow }

    /// Drops a disc of a side into a column, counted from 1.
    mutating func drop(_ disc: Disc, into column: Int) throws(TableError) {
        guard ending == nil else { throw .gameOver }
        guard 1...7 ~= column, columns.count == 7 else { throw .noSuchColumn }
        guard columns[column - 1].count < 6 else { throw .columnFull }
        columns[column - 1].append(disc)
        if hasFour(disc) { ending = .won(disc) } else if count == 42 { ending = .drawn }
    }

    /// A good column for the side to move: one that wins, else one where the other side would win, else the free one
    /// nearest to the middle. Nil if none is free.
    public var suggestion: Int? {
        func wins(_ disc: Disc, _ column: Int) -> Bool {
            var next = self
            return (try? next.drop(disc, into: column)) != nil && next.ending == .won(disc)
        }
        let columns = [4, 3, 5, 2, 6, 1, 7].filter { self[$0 - 1, 5] == nil }
        return columns.first { wins(turn, $0) } ?? columns.first { wins(turn.other, $0) } ?? columns.first
    }

    private subscript(column: Int, row: Int) -> Disc? {
        columns.indices ~= column && columns[column].indices ~= row ? columns[column][row] : nil
    }

    private func hasFour(_ disc: Disc) -> Bool {
        let steps = [(1, 0), (0, 1), (1, 1), (1, -1)]
        return (0..<42).contains { cell in
            steps.contains { step in
                (0..<4).allSatisfy { self[cell % 7 + $0 * step.0, cell / 7 + $0 * step.1] == disc }
            }
        }
    }
}

extension Position: CustomStringConvertible {
    /// The board as seven lines: six rows, and the numbers of the columns.
    public var description: String {
        let rows = (0..<6).reversed().map { row in
            (0..<7).map { self[$0, row] == nil ? "." : self[$0, row] == .red ? "R" : "Y" }
                .joined(separator: " ")
        }
        return (rows + ["1 2 3 4 5 6 7"]).joined(separator: "\n")
    }
}

extension Position.Ending: CustomStringConvertible {
    /// The result as a sentence.
    public var description: String {
        switch self {
        case .won(let disc): "\(disc) has won"
        case .drawn: "the board is full: nobody has won"
        case .left(let disc): "\(disc) has left: nobody has won"
        }
    }
}
