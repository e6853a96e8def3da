/// The proven outcomes of positions, in memory that never grows.
///
/// A bucket has eight bytes and two entries. The first keeps the result that took the most work, the second the latest
/// result. The table is a value: a copy that is written to gets memory of its own.
struct OutcomeTable: Sendable {
    private let bucketBits: UInt64
    private var buckets: [UInt64]

    /// Creates a table of 2 to the power of `bucketBits` buckets. With fewer than 22 bits, the key would not fit into
    /// an entry.
    init(bucketBits: Int = 22) {
        precondition((22...30).contains(bucketBits))
        self.bucketBits = UInt64(bucketBits)
        buckets = Array(repeating: 0, count: 1 << bucketBits)
    }

    /// Calls `body` with the memory itself, which must not be used after `body` returns.
    mutating func withAccess<Result>(_ body: (Access) -> Result) -> Result {
        let bits = bucketBits
        return buckets.withUnsafeMutableBufferPointer { body(Access($0.baseAddress!, bucketBits: bits)) }
    }

    /// The knowledge about a position's outcome for the side to move.
    enum Known {
        @inline(__always) static var nothing: UInt32 { 0 }
        @inline(__always) static var loss: UInt32 { 1 }
        @inline(__always) static var atMostDraw: UInt32 { 2 }
        @inline(__always) static var draw: UInt32 { 3 }
        @inline(__always) static var atLeastDraw: UInt32 { 4 }
        @inline(__always) static var win: UInt32 { 5 }
    }

    /// Access to the table during a search.
    struct Access {
        private let buckets: UnsafeMutablePointer<UInt64>
        private let tagBits: UInt64

        fileprivate init(_ buckets: UnsafeMutablePointer<UInt64>, bucketBits: UInt64) {
            self.buckets = buckets
            tagBits = 49 - bucketBits
        }

        /// Returns the knowledge about the position with this key.
        @inline(__always) func lookUp(_ key: UInt64) -> UInt32 {
            let mixed = Position.spread(key)
            let bucket = buckets[Int(truncatingIfNeeded: mixed &>> tagBits)]
            let tag = UInt32(truncatingIfNeeded: mixed & (1 &<< tagBits &- 1))
            let first = UInt32(truncatingIfNeeded: bucket)
            if first &>> 5 == tag { return first & 7 }
            let second = UInt32(truncatingIfNeeded: bucket &>> 32)
            return second &>> 5 == tag ? second & 7 : 0
        }

        /// Stores the knowledge about the position with this key. `positions` is the number of positions that the
        /// search visited for it.
        @inline(__always) func store(_ key: UInt64, _ known: UInt32, positions: UInt64) {
            let mixed = Position.spread(key)
            let place = Int(truncatingIfNeeded: mixed &>> tagBits)
            let tag = UInt32(truncatingIfNeeded: mixed & (1 &<< tagBits &- 1))
            let work: UInt32 = positions < 64 ? 0 : positions < 2_048 ? 1 : positions < 65_536 ? 2 : 3
            let entry = UInt64(tag &<< 5 | work &<< 3 | known)
            let bucket = buckets[place]
            let first = UInt32(truncatingIfNeeded: bucket)
            if first &>> 5 == tag || (first &>> 3) & 3 <= work {
                let moved = first &>> 5 == tag ? bucket &>> 32 : UInt64(first)
                buckets[place] = moved &<< 32 | entry
            } else {
                buckets[place] = entry &<< 32 | UInt64(first)
            }
        }
    }
}
