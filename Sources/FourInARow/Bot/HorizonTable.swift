/// The results of searches to a horizon, in memory that never grows.
///
/// An entry is valid for one horizon only. A new entry replaces the one in its place. The table is a value, like
/// `OutcomeTable`.
struct HorizonTable: Sendable {
    /// How a stored value relates to the true one.
    enum Bound: UInt64 {
        case exact = 1
        case atLeast = 2
        case atMost = 3
    }

    private let entryBits: UInt64
    private var entries: [UInt64]

    /// Creates a table of 2 to the power of `entryBits` entries of eight bytes. With fewer than 9 bits, a key would not
    /// fit.
    init(entryBits: Int) {
        precondition((9...24).contains(entryBits))
        self.entryBits = UInt64(entryBits)
        entries = Array(repeating: 0, count: 1 << entryBits)
    }

    /// Calls `body` with the memory itself, which must not be used after `body` returns.
    mutating func withAccess<Result>(_ body: (Access) -> Result) -> Result {
        let bits = entryBits
        return entries.withUnsafeMutableBufferPointer { body(Access($0.baseAddress!, entryBits: bits)) }
    }

    /// Access to the table during a search.
    struct Access {
        private let entries: UnsafeMutablePointer<UInt64>
        private let tagBits: UInt64

        fileprivate init(_ entries: UnsafeMutablePointer<UInt64>, entryBits: UInt64) {
            self.entries = entries
            tagBits = 49 - entryBits
        }

        // From the lowest bit: 16 bits of value, 2 of bound, 6 of horizon, and the tag.
        @inline(__always) private func tag(_ mixed: UInt64, _ horizon: Int) -> UInt64 {
            (mixed & (1 &<< tagBits &- 1)) &<< 6 | UInt64(truncatingIfNeeded: horizon)
        }

        /// Returns the result of a search to this horizon for the position with this key.
        @inline(__always) func lookUp(_ key: UInt64, _ horizon: Int) -> (value: Int, bound: Bound)? {
            let mixed = Position.spread(key)
            let entry = entries[Int(truncatingIfNeeded: mixed &>> tagBits)]
            guard entry &>> 18 == tag(mixed, horizon), let bound = Bound(rawValue: (entry &>> 16) & 3) else {
                return nil
            }
            return (Int(Int16(truncatingIfNeeded: entry)), bound)
        }

        /// Stores the result of a search to this horizon for the position with this key.
        @inline(__always) func store(_ key: UInt64, _ horizon: Int, _ value: Int, _ bound: Bound) {
            let mixed = Position.spread(key)
            entries[Int(truncatingIfNeeded: mixed &>> tagBits)] =
                tag(mixed, horizon) &<< 18 | bound.rawValue &<< 16
                | UInt64(UInt16(truncatingIfNeeded: value))
        }
    }
}
