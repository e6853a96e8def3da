import Synchronization

/// Numbers of four digits for the names of players, so that nobody sits down at the table of another test.
enum TableNumber {
    private static let count = Atomic(Int.random(in: 0..<9_000))

    /// A number that no other test of this run has got. Another run on the same machine has, as a rule, others.
    static func next() -> Int { 1_000 + count.wrappingAdd(1, ordering: .relaxed).oldValue % 9_000 }
}
