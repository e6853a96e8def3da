import Measuring

/// Draws round trips as bars of text, for the last lines of a terminal.
enum LiveHistogram {
    private static let rows = 10
    private static let columns = 40

    /// One row per bar, the shortest round trips first.
    static func lines(of histogram: LogLinearHistogram) -> [Line] {
        let bars = histogram.bars(atMost: rows)
        let most = bars.map(\.count).max() ?? 1
        let labels = bars.map { Figures.span(nanoseconds: Double($0.range.lowerBound)) }
        let width = labels.map(\.count).max() ?? 0
        return zip(bars, labels).map { bar, label in
            let length = bar.count == 0 ? 0 : max(1, bar.count * columns / most)
            return Line(label, .faint).padded(to: width, atStart: true)
                + Line(" " + String(repeating: "█", count: length)) + Line(" \(bar.count)", .faint)
        }
    }
}
