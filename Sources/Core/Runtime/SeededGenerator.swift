/// Random numbers from a seed: the same seed gives the same numbers, on every machine.
///
/// Jitter, incarnations in tests and the simulated world draw from it (SplitMix64). It is no source of secrets.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// A generator whose whole output `seed` decides.
    public init(seed: UInt64) { state = seed }

    /// The next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// True once in `chances` on average.
    public mutating func oneIn(_ chances: Int) -> Bool {
        Int.random(in: 0..<max(chances, 1), using: &self) == 0
    }

    /// A generator for a part of the work, independent of how much is drawn from this one afterwards.
    public mutating func fork() -> SeededGenerator { SeededGenerator(seed: next()) }
}
