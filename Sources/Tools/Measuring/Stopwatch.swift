/// How long ago it was made.
public struct Stopwatch: Sendable {
    private let start = ContinuousClock.now

    /// Starts now.
    public init() {}

    /// The time since then.
    public var seconds: Double { start.duration(to: .now) / .seconds(1) }
}
