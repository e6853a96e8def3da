/// What pings have shown about a link's round trip.
public struct RoundTrip: Hashable, Sendable {
    /// The latest measurement; nil before the first.
    public private(set) var last: Duration?
    /// A running average in which each measurement counts an eighth.
    public private(set) var smoothed: Duration?
    /// The shortest measured.
    public private(set) var least: Duration?

    mutating func measured(_ span: Moment.Span) {
        let duration = span.duration
        last = duration
        least = min(least ?? duration, duration)
        smoothed = smoothed.map { ($0 * 7 + duration) / 8 } ?? duration
    }
}
