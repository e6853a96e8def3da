import FourInARow

/// The last lines said at a table, with who said them.
struct ChatLog: Hashable {
    /// A line that somebody said.
    struct Line: Hashable {
        var disc: Disc
        var speaker: String
        var words: Words
    }

    /// More are on no screen.
    private static let most = 50

    private(set) var lines: [Line] = []

    mutating func add(_ line: Line) {
        lines.append(line)
        lines.removeFirst(max(lines.count - Self.most, 0))
    }
}
