import JSONText
import Measuring
import NighCore

/// All round trips of one measurement, in constant memory.
struct RoundTripRecord: Hashable, Sendable {
    private(set) var histogram = LogLinearHistogram()
    private var last: Int64?
    private var differences = 0.0
    private var differenceCount = 0

    /// Adds one round trip. The caller adds them in the order in which the pings were sent.
    mutating func add(_ roundTrip: Duration) {
        let span = Moment.Span(roundTrip).nanoseconds
        histogram.add(nanoseconds: span)
        if let last {
            differences += Double((span - last).magnitude)
            differenceCount += 1
        }
        last = span
    }

    /// The mean difference between each round trip and the one before, in nanoseconds; 0 if there are fewer than two.
    var jitter: Double { differenceCount > 0 ? differences / Double(differenceCount) : 0 }

    /// The statistics as JSON; null if there are no round trips.
    var json: JSON {
        let spans = histogram
        guard let least = spans.least, let greatest = spans.greatest, let mean = spans.mean else {
            return .null
        }
        return [
            "count": .integer(spans.count),
            "min": Figures.json(nanoseconds: Double(least)), "mean": Figures.json(nanoseconds: mean),
            "max": Figures.json(nanoseconds: Double(greatest)), "jitter": Figures.json(nanoseconds: jitter),
            "p50": percentile(0.5), "p95": percentile(0.95), "p99": percentile(0.99),
        ]
    }

    private func percentile(_ share: Double) -> JSON {
        histogram.percentile(share).map { Figures.json(nanoseconds: Double($0)) } ?? .null
    }

    /// One percentile in words; nil if there are no round trips.
    func percentileInWords(_ share: Double) -> String? {
        histogram.percentile(share).map { Figures.span(nanoseconds: Double($0)) }
    }

    /// The statistics in words.
    var statistics: [String] {
        let spans = histogram
        guard let least = spans.least, let greatest = spans.greatest, let mean = spans.mean else { return [] }
        let middle = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)].compactMap { name, share in
            percentileInWords(share).map { "\(name) \($0)" }
        }
        let ends = [("min", Double(least)), ("mean", mean), ("max", Double(greatest)), ("jitter", jitter)]
        return [
            ends.map { "\($0) \(Figures.span(nanoseconds: $1))" }.joined(separator: ", "),
            middle.joined(separator: ", "),
        ]
    }
}

extension Figures {
    /// Nanoseconds as a number of milliseconds, to a tenth of a microsecond.
    static func json(nanoseconds: Double) -> JSON { .number((nanoseconds / 100).rounded() / 10_000) }
}
