/// A random number generator whose output depends only on its seed, on every machine (SplitMix64).
///
/// Jitter, incarnations in tests and the simulated world use it. It is not suitable for secrets.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator. `seed` determines its whole output.
    public init(seed: UInt64) { state = seed }

    /// Returns the next 64 random bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns true once in `chances` calls on average.
    public mutating func oneIn(_ chances: Int) -> Bool {
        Int.random(in: 0..<max(chances, 1), using: &self) == 0
    }

    /// Returns a random time between three quarters and five quarters of `span`, so that those who wait do not all act
    /// at once.
    package mutating func jittered(_ span: Moment.Span) -> Moment.Span {
        // A span that stands for "never" must not overflow.
        let quarter = min(max(span.nanoseconds / 4, 1), .max / 5)
        return Moment.Span(nanoseconds: Int64.random(in: quarter * 3...quarter * 5, using: &self))
    }

    /// Returns a new generator for a part of the work. Later numbers of this one do not affect it.
    public mutating func fork() -> SeededGenerator { SeededGenerator(seed: next()) }
}
