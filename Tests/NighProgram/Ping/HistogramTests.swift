import NighCore
import Testing

@testable import nigh

/// Tests that a histogram needs a fixed amount of memory and still reports correct values.
@Suite(.callsPrograms) struct HistogramTests {
    @Test(
        "Percentiles are within 1.6 % of the nearest rank, and the ends and the mean are exact",
        arguments: 0..<20)
    func percentiles(seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        let greatest = Int64(1) << Int64.random(in: 0...41, using: &chance)
        let spans = (0..<Int.random(in: 1...500, using: &chance)).map { _ in
            Int64.random(in: 0...greatest, using: &chance)
        }
        var histogram = LogLinearHistogram()
        for span in spans { histogram.add(nanoseconds: span) }
        let sorted = spans.sorted()
        for share in [0, 0.001, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1] {
            let rank = min(max(Int((share * Double(spans.count)).rounded(.up)), 1), spans.count)
            let exact = Double(sorted[rank - 1])
            let reported = Double(histogram.percentile(share) ?? -1)
            #expect(abs(reported - exact) <= exact / 63 + 0.5, "\(share): \(reported) for \(exact)")
        }
        #expect(histogram.least == sorted.first && histogram.greatest == sorted.last)
        #expect(histogram.percentile(1) == sorted.last)
        let mean = spans.reduce(0.0) { $0 + Double($1) } / Double(spans.count)
        #expect(abs((histogram.mean ?? -1) - mean) <= mean * 1e-9)
        #expect(histogram.count == spans.count)
    }

    @Test("The bars contain every value, side by side", arguments: 0..<20)
    func bars(seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        var histogram = LogLinearHistogram()
        for _ in 0..<200 { histogram.add(nanoseconds: Int64.random(in: 0...1 << 30, using: &chance)) }
        let limit = Int.random(in: 1...40, using: &chance)
        let bars = histogram.bars(atMost: limit)
        #expect((1...limit).contains(bars.count))
        #expect(bars.map(\.count).reduce(0, +) == 200)
        for (left, right) in zip(bars, bars.dropFirst()) {
            #expect(left.range.upperBound + 1 == right.range.lowerBound)
        }
    }

    @Test("Without values there are no results; negative values and values above an hour are kept")
    func ends() {
        var histogram = LogLinearHistogram()
        #expect(
            histogram.percentile(0.5) == nil && histogram.mean == nil && histogram.bars(atMost: 5).isEmpty)
        histogram.add(nanoseconds: -5)
        #expect(histogram.least == 0 && histogram.percentile(0.5) == 0)
        histogram.add(nanoseconds: .max)
        #expect(histogram.greatest == .max && histogram.percentile(1) == .max)
        #expect(histogram.bars(atMost: 3).map(\.count).reduce(0, +) == 2)
    }

    @Test("Jitter is the mean absolute difference between each round trip and the one before")
    func jitter() {
        var record = RoundTripRecord()
        #expect(record.jitter == 0 && record.json == .null && record.statistics.isEmpty)
        for milliseconds in [10, 12, 9, 9] { record.add(.milliseconds(milliseconds)) }
        #expect(record.jitter == (2_000_000 + 3_000_000 + 0) / 3.0)
        #expect(record.statistics.first == "min 9.000 ms, mean 10.00 ms, max 12.00 ms, jitter 1.667 ms")
    }

    @Test("A threshold is missed only by a value above it")
    func thresholds() {
        var tally = PingTally()
        for number in 1...100 {
            tally.send()
            if number <= 5 {
                tally.lose(by: .timeout)
            } else {
                tally.receive(number, after: .milliseconds(20), over: "tcp")
            }
        }
        #expect(PingThresholds(p99: .milliseconds(20), loss: 0.05).missed(by: tally).isEmpty)
        #expect(PingThresholds(p99: .milliseconds(19), loss: nil).missed(by: tally).count == 1)
        #expect(PingThresholds(p99: nil, loss: 0.049).missed(by: tally).count == 1)
        tally.send()
        tally.discardPending()
        #expect(tally.sent == 100 && tally.loss == 0.05)
    }
}
