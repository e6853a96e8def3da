import FourInARow

/// The rules once more, over an array and as plainly as they can be said.
///
/// The tests and `check` hold the real board to this one, so it shares no code with it.
struct SlowBoard {
    /// Columns from left to right, in each the discs from below.
    private(set) var discs: [[Disc]] = Array(repeating: [], count: 7)

    /// All 69 lines of four, as places.
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

    /// The lines that lie in one colour.
    func lines(of disc: Disc) -> [[Place]] {
        Self.lines.filter { $0.allSatisfy { self.disc($0.column, $0.row) == disc } }
    }

    /// Whether the disc on top of a column is in a line.
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

    /// One number a column that tells its discs apart from any others, for a dictionary.
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
