/// An alpha-beta search to a given number of discs on the board, where it estimates the position.
///
/// The bot's levels differ in this horizon. Unlike `OutcomeSearch`, the search distinguishes near wins from far ones.
struct HorizonSearch {
    /// A win with the n-th disc of the board has the value `win - n`. Estimates stay below half of `win`.
    static var win: Int { 10_000 }
    /// Greater than every value.
    static var infinity: Int { 20_000 }

    private let table: HorizonTable.Access
    private let candidates: Candidates
    /// The number of discs at which the search estimates the position.
    private let horizon: Int

    init(table: HorizonTable.Access, candidates: Candidates, horizon: Int) {
        self.table = table
        self.candidates = candidates
        self.horizon = horizon
    }

    /// Returns whether a value means that one side can complete a line, and is not an estimate.
    static func isCertain(_ value: Int) -> Bool { abs(value) > win / 2 }

    /// Returns the value of a position for the side to move.
    ///
    /// The value is exact between the bounds. Otherwise it is at or beyond the bound that it passes. The board must
    /// have no line yet.
    mutating func value(_ position: Position, above lower: Int, below upper: Int) -> Int {
        let (mover, occupied) = (position.mover, position.occupied)
        let count = position.count
        if Position.winningCells(mover, occupied) & Position.landings(occupied) != 0 {
            return Self.win &- (count &+ 1)
        }
        if count >= 41 { return 0 }
        let threats = Position.winningCells(position.opponent, occupied)
        return value(mover, occupied, threats, count, lower, upper)
    }

    /// Returns the value for a mover that cannot win at once. `threats` are the cells that complete a line of the other
    /// side.
    private mutating func value(
        _ mover: UInt64, _ occupied: UInt64, _ threats: UInt64, _ count: Int, _ lower: Int, _ upper: Int
    ) -> Int {
        let landings = Position.landings(occupied)
        var moves = landings
        let forced = landings & threats
        if forced != 0 {
            if forced & (forced &- 1) != 0 { return (count &+ 2) &- Self.win }
            moves = forced
        }
        moves &= ~(threats &>> 1)
        if moves == 0 { return (count &+ 2) &- Self.win }
        if count >= 40 { return 0 }
        if count >= horizon { return Self.rating(mover, occupied, threats, count) }

        let key = Position.key(mover, occupied)
        if let known = table.lookUp(key, horizon) {
            switch known.bound {
            case .exact: return known.value
            case .atLeast: if known.value >= upper { return known.value }
            case .atMost: if known.value <= lower { return known.value }
            }
        }
        var best = -Self.infinity
        var candidate = candidates.first(count)
        let end = candidates.sort(moves, mover, occupied, count)
        while candidate < end {
            let worth =
                0
                &- value(
                    mover ^ occupied, occupied | candidate.pointee.landing, candidate.pointee.threats,
                    count &+ 1,
                    0 &- upper, 0 &- (best > lower ? best : lower))
            if worth > best {
                best = worth
                if best >= upper { break }
            }
            candidate += 1
        }
        let bound: HorizonTable.Bound = best >= upper ? .atLeast : best <= lower ? .atMost : .exact
        table.store(key, horizon, best, bound)
        return best
    }

    /// Estimates the value of a position for the side to move.
    ///
    /// Each cell that completes a line counts. It counts more in the rows that its side gets when the columns fill up:
    /// the odd rows for the first player, the even rows for the second.
    private static func rating(_ mover: UInt64, _ occupied: UInt64, _ threats: UInt64, _ count: Int) -> Int {
        let opponent = mover ^ occupied
        let own = Position.winningCells(mover, occupied)
        let ownRows = count & 1 == 0 ? Position.oddRows : Position.evenRows
        let theirRows = Position.cells ^ ownRows
        return 16 &* (own.nonzeroBitCount &- threats.nonzeroBitCount)
            &+ 24 &* ((own & ownRows).nonzeroBitCount &- (threats & theirRows).nonzeroBitCount)
            &+ linesThrough(mover) &- linesThrough(opponent)
    }

    /// Returns the number of lines through each of these cells, summed: 3 through a corner, 13 through the middle
    /// cells.
    private static func linesThrough(_ discs: UInt64) -> Int {
        (discs & 0x0000_B402_D5AB_402D).nonzeroBitCount &+ 2
            &* (discs & 0x0000_8490_C663_0921).nonzeroBitCount
            &+ 4 &* (discs & 0x0000_799A_15A8_599E).nonzeroBitCount &+ 8
            &* (discs & 0x0000_0061_E3C7_8600).nonzeroBitCount
    }
}
