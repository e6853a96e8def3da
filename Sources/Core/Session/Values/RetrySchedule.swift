/// Decides when to call an unreachable peer again, and when to give up. A value without I/O: its owner makes the calls,
/// and reports them and the peer's routes to it.
public struct RetrySchedule: Sendable {
    private static let shortestPause = Moment.Span.milliseconds(250)
    private static let longestPause = Moment.Span.seconds(2)

    private let start: Moment
    /// When to give up; `.never` means never.
    public let deadline: Moment
    private var nextPause = Self.shortestPause
    /// When the last call began.
    private var calledAt = Moment(nanoseconds: .min)
    /// The addresses at which the peer could be reached when its routes were last reported.
    private var known: Set<TransportAddress> = []
    /// Whether a route has come since the last call began.
    private var hasNewRoute = false
    /// Whether the peer named a time before which it does not want to be called.
    private var hasRetryTime = false

    /// Creates a value for a peer that was not called yet.
    public init(from start: Moment, until deadline: Moment) {
        self.start = start
        self.deadline = deadline
    }

    /// Notes that a call begins while the peer can be reached at `addresses`.
    public mutating func callStarted(along addresses: [TransportAddress], at now: Moment) {
        calledAt = now
        known = Set(addresses)
        hasNewRoute = false
        hasRetryTime = false
    }

    /// Returns when to make the next call after one failed with `error`, or nil to give up.
    public mutating func nextCall(after error: NighError, at now: Moment) -> Moment? {
        guard error.isRetryable else { return nil }
        let pause = pause()
        // The last call needs some time, too.
        let latest = deadline + Moment.Span(nanoseconds: -Self.shortestPause.nanoseconds)
        hasRetryTime = error.retryAfter != nil
        if let named = error.retryAfter {
            let earliest = now + Moment.Span(named)
            return earliest < deadline ? max(earliest, min(now + pause, latest)) : nil
        }
        guard now < latest else { return nil }
        return min(earlyCall(at: now) ?? now + pause, latest)
    }

    /// Notes that the peer can be reached at `addresses` now. Returns when to make the next call if that is sooner than
    /// planned: a route has come, or has come back, since the last call began.
    public mutating func nextCall(along addresses: [TransportAddress], at now: Moment) -> Moment? {
        let current = Set(addresses)
        if !current.isSubset(of: known) { hasNewRoute = true }
        known = current
        return hasRetryTime ? nil : earlyCall(at: now)
    }

    /// Returns when to call along a new route: at once, but at least `shortestPause` after the last call began, because
    /// a route may come and go without an end.
    private func earlyCall(at now: Moment) -> Moment? {
        hasNewRoute ? max(now, calledAt + Self.shortestPause) : nil
    }

    /// Returns how long to wait after a failure that says nothing else: longer each time.
    public mutating func pause() -> Moment.Span {
        defer { nextPause = min(nextPause + nextPause, Self.longestPause) }
        return nextPause
    }

    /// Returns the last failure for a report. It says for how long the peer was tried, unless the peer has answered.
    public func failure(_ error: NighError, at now: Moment) -> NighError {
        guard error.isRetryable, error.retryAfter == nil else { return error }
        let tenths = max((now - start).nanoseconds, 0) / 100_000_000
        let note = "tried for \(tenths / 10).\(tenths % 10) s"
        var result = error
        result.advice = error.advice.map { "\(note); \($0)" } ?? note
        return result
    }
}
