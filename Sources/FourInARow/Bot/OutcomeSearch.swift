/// Alpha-beta for the outcome alone, which takes two questions of yes or no: is it a win, is it no loss.
///
/// `Solver` runs it. Each question is a search with an empty window, and the answers to both share a table. It is written
/// for a compiler that does not optimise, too: no ranges, no closures, no arrays where positions go by the million.
struct OutcomeSearch {
    private let table: OutcomeTable.Access
    private let candidates: Candidates
    /// How many positions may be looked at.
    private let budget: UInt64
    private(set) var positions: UInt64 = 0

    /// Up to so many discs a position and its mirror image are one in the table. Later they hardly ever meet.
    private static var mostDiscsMirrored: Int { 14 }

    init(table: OutcomeTable.Access, candidates: Candidates, budget: UInt64) {
        self.table = table
        self.candidates = candidates
        self.budget = budget
    }

    /// Whether the answers mean nothing, because there were more positions to look at than allowed.
    var isExhausted: Bool { positions > budget }

    /// The outcome for the side to move on a board without a line; means nothing if the search `isExhausted`.
    mutating func outcome(_ position: Position) -> Outcome {
        if reaches(.win, position) { return .win }
        return reaches(.draw, position) ? .draw : .loss
    }

    /// Whether the outcome for the side to move on a board without a line is at least this one.
    mutating func reaches(_ goal: Outcome, _ position: Position) -> Bool {
        guard goal > .loss else { return true }
        let (mover, occupied) = (position.mover, position.occupied)
        if Position.winningCells(mover, occupied) & Position.landings(occupied) != 0 { return true }
        if position.count >= 41 { return goal == .draw }
        let threats = Position.winningCells(position.opponent, occupied)
        return reaches(mover, occupied, threats, position.count, goal == .win)
    }

    /// Whether the mover, who cannot win at once, wins (`wantsWin`), or else does not lose.
    ///
    /// - Parameter threats: the empty cells that would complete a line of the other side.
    private mutating func reaches(
        _ mover: UInt64, _ occupied: UInt64, _ threats: UInt64, _ count: Int, _ wantsWin: Bool
    ) -> Bool {
        positions &+= 1
        let landings = Position.landings(occupied)
        var moves = landings
        let forced = landings & threats
        if forced != 0 {
            if forced & (forced &- 1) != 0 { return false }
            moves = forced
        }
        // Nobody may play right below a cell where the other side wins.
        moves &= ~(threats &>> 1)
        if moves == 0 { return false }
        if count >= 40 { return !wantsWin }
        if let answer = answerWithoutSearch(mover, occupied, count, wantsWin) { return answer }

        let key =
            count <= Self.mostDiscsMirrored
            ? Position.symmetricKey(mover, occupied) : Position.key(mover, occupied)
        let known = table.known(key)
        if wantsWin {
            if known == OutcomeTable.Known.win { return true }
            if known != OutcomeTable.Known.nothing, known != OutcomeTable.Known.atLeastDraw { return false }
        } else {
            if known >= OutcomeTable.Known.draw { return true }
            if known == OutcomeTable.Known.loss { return false }
        }
        if isExhausted { return false }

        let before = positions
        let first = candidates.first(count)
        let end = candidates.sort(moves, mover, occupied, count)
        var answer = false
        var candidate = first
        while candidate < end {
            let landing = candidate.pointee.landing
            let theirs = reaches(
                mover ^ occupied, occupied | landing, candidate.pointee.threats, count &+ 1, !wantsWin)
            if !theirs {
                answer = true
                break
            }
            candidate += 1
        }
        if isExhausted { return false }
        let learnt: UInt32
        if wantsWin {
            learnt =
                answer
                ? OutcomeTable.Known.win
                : known == OutcomeTable.Known.atLeastDraw
                    ? OutcomeTable.Known.draw : OutcomeTable.Known.atMostDraw
        } else {
            learnt =
                !answer
                ? OutcomeTable.Known.loss
                : known == OutcomeTable.Known.atMostDraw
                    ? OutcomeTable.Known.draw : OutcomeTable.Known.atLeastDraw
        }
        table.keep(key, learnt, positions: positions &- before)
        return answer
    }

    /// What the empty cells alone decide: no line is left for one side, or the second player needs only follow.
    @inline(__always) private func answerWithoutSearch(
        _ mover: UInt64, _ occupied: UInt64, _ count: Int, _ wantsWin: Bool
    ) -> Bool? {
        let empty = Position.cells & ~occupied
        if wantsWin {
            if !Position.hasLine(mover | empty) { return false }
        } else {
            if !Position.hasLine((mover ^ occupied) | empty) { return true }
        }
        // Every column has an even number of discs: if the other side answers each disc with one on top of it, it gets
        // all even rows, and the mover all odd ones.
        if (occupied &<< 1) & Position.evenRows == occupied & Position.evenRows {
            if !Position.hasLine(mover | (empty & Position.oddRows)) {
                if wantsWin { return false }
                if Position.hasLine((mover ^ occupied) | (empty & Position.evenRows)) { return false }
            }
        }
        return nil
    }
}
