/// Counts how often each duration was measured, in constant memory. Every octave is divided into the same number of
/// equal steps, so a duration is known to 1/32 of itself. Minimum, maximum and mean are exact.
struct LogLinearHistogram: Hashable, Sendable {
    /// The number of steps per octave; a power of two.
    static let stepsPerOctave = 32
    /// The longest duration with a step, more than an hour. Longer ones are counted in its step.
    static let longest: Int64 = 1 << 42 - 1

    private static let stepBits = stepsPerOctave.trailingZeroBitCount
    private static let stepCount = step(of: longest) + 1

    private var counts: [Int] = []
    private(set) var count = 0
    /// The shortest duration in nanoseconds; nil if nothing was counted.
    private(set) var least: Int64?
    private(set) var greatest: Int64?
    private var total = 0.0

    /// Counts one duration; a negative one counts as zero.
    mutating func add(nanoseconds: Int64) {
        let span = max(nanoseconds, 0)
        if counts.isEmpty { counts = [Int](repeating: 0, count: Self.stepCount) }
        counts[Self.step(of: min(span, Self.longest))] += 1
        count += 1
        total += Double(span)
        least = min(least ?? span, span)
        greatest = max(greatest ?? span, span)
    }

    /// The mean in nanoseconds; nil if nothing was counted.
    var mean: Double? { count > 0 ? total / Double(count) : nil }

    /// Returns a percentile by nearest rank: the shortest duration such that at most `1 - share` of all are longer, as
    /// the middle of its step. Nil if nothing was counted.
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

    /// Several neighboring steps together.
    struct Bar: Hashable, Sendable {
        /// The durations of the bar in nanoseconds, from the shortest to the longest.
        let range: ClosedRange<Int64>
        let count: Int
    }

    /// Everything that was counted, from the shortest to the longest, in at most `limit` bars of the same number of
    /// steps.
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

    /// Durations below `2 * stepsPerOctave` nanoseconds have a step of their own.
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
