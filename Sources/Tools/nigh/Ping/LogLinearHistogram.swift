/// How often each span of time was measured, in a room that does not grow: every octave is cut into the same number of equal
/// steps, so that a span is known to a thirty-second of itself. What is told of the least, the greatest and the mean is exact.
struct LogLinearHistogram: Hashable, Sendable {
    /// How many steps an octave has; a power of two.
    static let stepsPerOctave = 32
    /// What is longer counts as this long where steps are concerned: more than an hour.
    static let longest: Int64 = 1 << 42 - 1

    private static let stepBits = stepsPerOctave.trailingZeroBitCount
    private static let stepCount = step(of: longest) + 1

    private var counts: [Int] = []
    private(set) var count = 0
    /// In nanoseconds; nil where nothing was counted.
    private(set) var least: Int64?
    private(set) var greatest: Int64?
    private var total = 0.0

    /// Counts one span; one that is negative counts as none.
    mutating func add(nanoseconds: Int64) {
        let span = max(nanoseconds, 0)
        if counts.isEmpty { counts = [Int](repeating: 0, count: Self.stepCount) }
        counts[Self.step(of: min(span, Self.longest))] += 1
        count += 1
        total += Double(span)
        least = min(least ?? span, span)
        greatest = max(greatest ?? span, span)
    }

    /// In nanoseconds; nil where nothing was counted.
    var mean: Double? { count > 0 ? total / Double(count) : nil }

    /// The shortest span than which no more than `1 - share` of all were longer (the nearest rank), as the middle of its step;
    /// nil where nothing was counted.
    func percentile(_ share: Double) -> Int64? {
        guard let least, let greatest else { return nil }
        let rank = min(max(Int((share * Double(count)).rounded(.up)), 1), count)
        if rank == count { return greatest }
        var seen = 0
        for (step, here) in counts.enumerated() where here > 0 {
            seen += here
            if seen >= rank {
                let range = Self.range(of: step)
                return min(max((range.lowerBound + range.upperBound) / 2, least), greatest)
            }
        }
        return greatest
    }

    /// A few neighbouring steps together.
    struct Bar: Hashable, Sendable {
        /// In nanoseconds, from the shortest that belongs to it to the longest.
        let range: ClosedRange<Int64>
        let count: Int
    }

    /// All that was counted, from the shortest to the longest, in at most `limit` bars of equally many steps.
    func bars(atMost limit: Int) -> [Bar] {
        guard let least, let greatest, limit > 0 else { return [] }
        let first = Self.step(of: min(least, Self.longest))
        let last = Self.step(of: min(greatest, Self.longest))
        let width = (last - first) / limit + 1
        return stride(from: first, through: last, by: width).map { begin in
            let end = min(begin + width - 1, last)
            return Bar(
                range: Self.range(of: begin).lowerBound...Self.range(of: end).upperBound,
                count: counts[begin...end].reduce(0, +))
        }
    }

    /// Below two octaves of steps each span has a step of its own.
    private static func step(of span: Int64) -> Int {
        guard span >= 2 * Int64(stepsPerOctave) else { return Int(span) }
        let shift = Int64.bitWidth - 1 - span.leadingZeroBitCount - stepBits
        return shift * stepsPerOctave + Int(span >> shift)
    }

    private static func range(of step: Int) -> ClosedRange<Int64> {
        guard step >= 2 * stepsPerOctave else { return Int64(step)...Int64(step) }
        let shift = step / stepsPerOctave - 1
        let low = Int64(step - shift * stepsPerOctave) << shift
        return low...(low + (1 << shift) - 1)
    }
}
