import FourInARow

/// The rules again, on an array and as simple as possible.
///
/// The tests and `check` compare the real board with this one, so it shares no code with it.
struct ReferenceBoard {
    /// The columns from left to right, each with its discs from the bottom up.
    private(set) var discs: [[Disc]] = Array(repeating: [], count: 7)

    /// The places of all 69 lines of four.
    static let lines: [[Place]] = {
        var lines: [[Place]] = []
        for column in 0..<7 {
            for row in 0..<6 {
                for (right, up) in [(0, 1), (1, 0), (1, 1), (1, -1)] {
                    let line = (0..<4).map { Place(column: column + $0 * right, row: row + $0 * up) }
                    if line.allSatisfy({ $0.column < 7 && (0..<6).contains($0.row) }) { lines.append(line) }
                }
            }
        }
        return lines
    }()

    struct Place: Hashable {
        var column: Int
        var row: Int
    }

    func disc(_ column: Int, _ row: Int) -> Disc? {
        row < discs[column].count ? discs[column][row] : nil
    }

    var count: Int { discs.reduce(0) { $0 + $1.count } }

    mutating func drop(_ disc: Disc, _ column: Int) -> Int? {
        guard discs[column].count < 6 else { return nil }
        discs[column].append(disc)
        return discs[column].count - 1
    }

    /// Returns the lines that are all in one colour.
    func lines(of disc: Disc) -> [[Place]] {
        Self.lines.filter { $0.allSatisfy { self.disc($0.column, $0.row) == disc } }
    }

    /// Returns whether the disc on top of a column is part of a line.
    func hasLine(through column: Int) -> Bool {
        guard let disc = discs[column].last else { return false }
        let row = discs[column].count - 1
        for (right, up) in [(0, 1), (1, 0), (1, 1), (1, -1)] {
            var length = 1
            for sign in [1, -1] {
                var step = sign
                while (0..<7).contains(column + step * right),
                    row + step * up >= 0, self.disc(column + step * right, row + step * up) == disc
                {
                    length += 1
                    step += sign
                }
            }
            if length >= 4 { return true }
        }
        return false
    }

    /// The discs as one number for each column, for use as a dictionary key.
    var signs: [UInt8] {
        discs.map { $0.reduce(1) { $0 * 2 + $1.rawValue } }
    }

    var text: String {
        (0..<6).reversed().map { row in
            (0..<7).map { column in
                switch disc(column, row) {
                case .red: "R"
                case .yellow: "Y"
                case nil: "."
                }
            }.joined() + "\n"
        }.joined()
    }
}
