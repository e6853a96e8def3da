import Nigh
import NighCore

/// Figures of the calls of one method.
public struct MethodFigures: Hashable, Sendable {
    /// The method: "Board.play(column:)".
    public let method: String
    /// Whether peers call it here. Otherwise this program calls it at peers.
    public let isIncoming: Bool
    /// The number of calls that are over.
    public let calls: Int
    /// The number of those that failed or were cancelled.
    public let failures: Int
    /// The time that half of the calls took at most, to within a tenth.
    public let median: Duration
    /// The time that 99 of 100 calls took at most, to within a tenth.
    public let percentile99: Duration
}

extension ActorSystem {
    /// Figures of the methods that were called so far, by name. The time of an incoming call is from its start here to
    /// its end here. The time of any other call is how long the caller waited.
    public var figures: [MethodFigures] { state.withLock { $0.statistics.figures } }

    func note(_ figures: MethodStatistics.Index, since begin: Moment, hasFailed: Bool) {
        let time = session.loop.now - begin
        state.withLock { $0.statistics.note(figures, time, hasFailed: hasFailed) }
    }
}

/// Counts the calls of each method. A value; it grows with the methods of this program's contracts only.
struct MethodStatistics {
    /// Finds the figures of a method without a search.
    struct Index: Sendable {
        fileprivate let number: Int
    }

    private struct Key: Hashable {
        let method: String
        let isIncoming: Bool
    }

    private struct Counts {
        let key: Key
        var calls = 0
        var failures = 0
        var times = TimeHistogram()
    }

    private var numbers: [Key: Int] = [:]
    private var counts: [Counts] = []

    /// The number of methods.
    var count: Int { counts.count }

    mutating func index(of method: String, isIncoming: Bool) -> Index {
        let key = Key(method: method, isIncoming: isIncoming)
        if let number = numbers[key] { return Index(number: number) }
        numbers[key] = counts.count
        counts.append(Counts(key: key))
        return Index(number: counts.count - 1)
    }

    mutating func note(_ index: Index, _ time: Moment.Span, hasFailed: Bool) {
        counts[index.number].calls += 1
        counts[index.number].times.note(time)
        if hasFailed { counts[index.number].failures += 1 }
    }

    var figures: [MethodFigures] {
        counts.filter { $0.calls > 0 }.map { counts in
            MethodFigures(
                method: counts.key.method, isIncoming: counts.key.isIncoming, calls: counts.calls,
                failures: counts.failures, median: counts.times.percentile(50),
                percentile99: counts.times.percentile(99))
        }.sorted { ($0.method, $0.isIncoming ? 1 : 0) < ($1.method, $1.isIncoming ? 1 : 0) }
    }
}

/// How often a time was how long, to within a tenth. A value of fixed size.
struct TimeHistogram {
    /// Eight for each power of two of nanoseconds.
    private var counts = [UInt32](repeating: 0, count: 64 * 8)
    private var total = 0

    private static func index(_ nanoseconds: UInt64) -> Int {
        guard nanoseconds >= 8 else { return Int(nanoseconds) }
        let power = 63 - nanoseconds.leadingZeroBitCount
        return power * 8 + Int(nanoseconds >> (power - 3) & 7)
    }

    /// The middle of the times that have this index.
    private static func nanoseconds(_ index: Int) -> UInt64 {
        let (power, eighth) = (index / 8, UInt64(index % 8))
        guard power >= 3 else { return UInt64(index) }
        return ((8 + eighth) << (power - 3)) + ((1 << power) >> 4)
    }

    mutating func note(_ time: Moment.Span) {
        counts[Self.index(UInt64(max(0, time.nanoseconds)))] &+= 1
        total += 1
    }

    func percentile(_ percent: Int) -> Duration {
        var left = (total * percent + 99) / 100
        for (index, count) in counts.enumerated() where count > 0 {
            left -= Int(count)
            if left <= 0 { return .nanoseconds(Int64(clamping: Self.nanoseconds(index))) }
        }
        return .zero
    }
}
