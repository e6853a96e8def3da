/// The moves that a search still has to try, the most promising first, in memory that is allocated once for the whole
/// search.
struct Candidates {
    /// A possible move, and how promising it is.
    struct Candidate {
        var landing: UInt64
        /// The cells that would complete a line for the mover after this move.
        var threats: UInt64
        var promise: Int
    }

    /// Seven entries for each number of discs on the board.
    private let places: UnsafeMutablePointer<Candidate>

    /// Calls `body` with the memory for a search. The memory must not be used after `body` returns.
    static func withMemory<Result>(_ body: (Candidates) -> Result) -> Result {
        let capacity = Board.columns * (Board.columns * Board.rows + 1)
        return withUnsafeTemporaryAllocation(of: Candidate.self, capacity: capacity) {
            body(Candidates(places: $0.baseAddress!))
        }
    }

    /// Returns the place of the first move of a position with `count` discs.
    @inline(__always) func first(_ count: Int) -> UnsafeMutablePointer<Candidate> {
        places + count &* Board.columns
    }

    /// Stores these moves of a position with `count` discs, sorted, and returns the end of them.
    @inline(__always) func sort(
        _ moves: UInt64, _ mover: UInt64, _ occupied: UInt64, _ count: Int
    ) -> UnsafeMutablePointer<Candidate> {
        let first = first(count)
        var end = first
        var rest = moves
        while rest != 0 {
            let landing = rest & (0 &- rest)
            rest ^= landing
            let threats = Position.winningCells(mover | landing, occupied | landing)
            let promise = threats.nonzeroBitCount &* 8 &+ Self.centrality(landing)
            var place = end
            while place > first, (place - 1).pointee.promise < promise {
                place.pointee = (place - 1).pointee
                place -= 1
            }
            place.pointee = Candidate(landing: landing, threats: threats, promise: promise)
            end += 1
        }
        return end
    }

    /// Returns how close a cell is to the middle column, where more lines cross.
    @inline(__always) private static func centrality(_ landing: UInt64) -> Int {
        let column = landing.trailingZeroBitCount / Lines.columnStride
        return 3 &- abs(3 &- column)
    }
}
