import FourInARow
import NighCore

/// The last chat lines at a table, with their speakers.
struct ChatLog: Hashable {
    /// A line that a player said.
    struct Line: Hashable {
        var disc: Disc
        var speaker: String
        var text: SafeText
        var moment: Moment
    }

    /// No screen shows more lines.
    private static let limit = 50

    private(set) var lines: [Line] = []

    mutating func add(_ line: Line) {
        lines.append(line)
        lines.removeFirst(max(lines.count - Self.limit, 0))
    }
}
