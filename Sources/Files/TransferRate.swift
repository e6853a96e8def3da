import NighCore

/// Measures how fast bytes are transferred: over the last 5 s.
package struct TransferRate: Sendable {
    private var samples: [(at: Moment, count: Int)]
    private var count: Int

    private static let window = Moment.Span.seconds(5)
    private static let step = Moment.Span.milliseconds(100)

    /// Begins when `count` bytes are there.
    package init(from count: Int, at now: Moment) {
        self.count = count
        samples = [(now, count)]
    }

    /// Notes that `count` bytes are there now.
    package mutating func reached(_ count: Int, at now: Moment) {
        self.count = count
        guard let last = samples.last, now - last.at >= Self.step else { return }
        samples.append((now, count))
        while samples.count > 2, now - samples[1].at >= Self.window { samples.removeFirst() }
    }

    /// Bytes a second; nil while there is too little to measure.
    package func bytesPerSecond(at now: Moment) -> Double? {
        guard let first = samples.first, count > first.count, now > first.at else { return nil }
        return Double(count - first.count) * 1e9 / Double((now - first.at).nanoseconds)
    }
}
