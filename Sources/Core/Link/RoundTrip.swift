/// The round-trip time of a link, as pings have measured it.
public struct RoundTrip: Hashable, Sendable {
    /// The latest measurement, or nil before the first.
    public private(set) var last: Duration?
    /// A moving average in which each new measurement counts one eighth.
    public private(set) var smoothed: Duration?
    /// The shortest measurement.
    public private(set) var minimum: Duration?

    mutating func record(_ span: Moment.Span) {
        let duration = span.duration
        last = duration
        minimum = min(minimum ?? duration, duration)
        smoothed = smoothed.map { ($0 * 7 + duration) / 8 } ?? duration
    }
}
