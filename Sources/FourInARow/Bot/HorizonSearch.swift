/// Alpha-beta to a certain number of discs on the board, where it judges a position by its looks.
///
/// The bot's levels differ in how far that horizon is. Unlike `OutcomeSearch` it tells near wins from far ones.
struct HorizonSearch {
    /// A win with the n-th disc of the board is worth this less n; what only looks good is worth less than half of it.
    static var win: Int { 10_000 }
    /// More than any value there is.
    static var infinity: Int { 20_000 }

    private let table: HorizonTable.Access
    private let candidates: Candidates
    /// The number of discs at which it judges by looks.
    private let horizon: Int

    init(table: HorizonTable.Access, candidates: Candidates, horizon: Int) {
        self.table = table
        self.candidates = candidates
        self.horizon = horizon
    }

    /// Whether a value means that one side has a line in sight, not that it looks better.
    static func isCertain(_ value: Int) -> Bool { abs(value) > win / 2 }

    /// What a position is worth to the side to move: exact between the bounds, else at or beyond the one it passes.
    ///
    /// The board has no line yet.
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

    /// The same for a mover who cannot win at once; `threats` are the cells that complete a line of the other side.
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
        if count >= horizon { return Self.looks(mover, occupied, threats, count) }

        let key = Position.key(mover, occupied)
        if let known = table.known(key, horizon) {
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
        table.keep(key, horizon, best, bound)
        return best
    }

    /// What a position seems to be worth to the side to move.
    ///
    /// A cell that completes a line counts, and counts more in the rows its side gets in the end when columns fill up:
    /// the first player the odd ones, the second the even ones.
    private static func looks(_ mover: UInt64, _ occupied: UInt64, _ threats: UInt64, _ count: Int) -> Int {
        let opponent = mover ^ occupied
        let own = Position.winningCells(mover, occupied)
        let ownRows = count & 1 == 0 ? Position.oddRows : Position.evenRows
        let theirRows = Position.cells ^ ownRows
        return 16 &* (own.nonzeroBitCount &- threats.nonzeroBitCount)
            &+ 24 &* ((own & ownRows).nonzeroBitCount &- (threats & theirRows).nonzeroBitCount)
            &+ linesThrough(mover) &- linesThrough(opponent)
    }

    /// How many lines run through these cells, summed: 3 through a corner, 13 through the middle ones.
    private static func linesThrough(_ discs: UInt64) -> Int {
        (discs & 0x0000_B402_D5AB_402D).nonzeroBitCount &+ 2
            &* (discs & 0x0000_8490_C663_0921).nonzeroBitCount
            &+ 4 &* (discs & 0x0000_799A_15A8_599E).nonzeroBitCount &+ 8
            &* (discs & 0x0000_0061_E3C7_8600).nonzeroBitCount
    }
}
