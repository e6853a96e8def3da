/// The moves a search still has to try, the most promising first, in memory taken once for the whole search.
struct Candidates {
    /// A move a search may make, and how promising it looks.
    struct Candidate {
        var landing: UInt64
        /// The cells that would complete a line for the mover afterwards.
        var threats: UInt64
        var promise: Int
    }

    /// Seven places for each number of discs on the board.
    private let places: UnsafeMutablePointer<Candidate>

    /// Gives a search the memory, which must not be used after `body`.
    static func withMemory<Result>(_ body: (Candidates) -> Result) -> Result {
        let capacity = Board.columns * (Board.columns * Board.rows + 1)
        return withUnsafeTemporaryAllocation(of: Candidate.self, capacity: capacity) {
            body(Candidates(places: $0.baseAddress!))
        }
    }

    /// Where the moves of a position with so many discs begin.
    @inline(__always) func first(_ count: Int) -> UnsafeMutablePointer<Candidate> {
        places + count &* Board.columns
    }

    /// Puts these moves of a position with so many discs there, and gives the end.
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

    /// How near a cell is to the middle, where more lines cross.
    @inline(__always) private static func centrality(_ landing: UInt64) -> Int {
        let column = landing.trailingZeroBitCount / Lines.columnStride
        return 3 &- abs(3 &- column)
    }
}
