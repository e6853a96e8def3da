/// Measures the time since it was created.
public struct Stopwatch: Sendable {
    private let start = ContinuousClock.now

    /// Starts the stopwatch.
    public init() {}

    /// The time since the start.
    public var seconds: Double { start.duration(to: .now) / .seconds(1) }
}
