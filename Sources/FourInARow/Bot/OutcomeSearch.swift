/// An alpha-beta search for the outcome alone. It asks two yes-or-no questions: is it a win, and is it no loss?
///
/// `Solver` runs it. Each question is a search with an empty window, and both questions share a table. The code is fast
/// without compiler optimisation, too: it uses no ranges, closures or arrays where it visits millions of positions.
struct OutcomeSearch {
    private let table: OutcomeTable.Access
    private let candidates: Candidates
    /// The most positions that the search may visit.
    private let budget: UInt64
    private(set) var positions: UInt64 = 0

    /// Up to this many discs, a position and its mirror image share an entry of the table. With more discs, they hardly
    /// ever both occur.
    private static var mostDiscsMirrored: Int { 14 }
    /// From this many discs on, the search does not look up the moves of a position before it tries them.
    private static var discsWithLittleWork: Int { 30 }

    init(table: OutcomeTable.Access, candidates: Candidates, budget: UInt64) {
        self.table = table
        self.candidates = candidates
        self.budget = budget
    }

    /// Whether the answers mean nothing, because the search needed more positions than its budget allows.
    var isExhausted: Bool { positions > budget }

    /// Returns the outcome for the side to move on a board without a line. It means nothing if the search
    /// `isExhausted`.
    mutating func outcome(_ position: Position) -> Outcome {
        if reaches(.win, position) { return .win }
        return reaches(.draw, position) ? .draw : .loss
    }

    /// Returns whether the outcome for the side to move, on a board without a line, is at least `goal`.
    mutating func reaches(_ goal: Outcome, _ position: Position) -> Bool {
        guard goal > .loss else { return true }
        let (mover, occupied) = (position.mover, position.occupied)
        if Position.winningCells(mover, occupied) & Position.landings(occupied) != 0 { return true }
        if position.count >= 41 { return goal == .draw }
        let threats = Position.winningCells(position.opponent, occupied)
        return reaches(mover, occupied, threats, position.count, goal == .win)
    }

    /// Returns whether a mover that cannot win at once wins (with `wantsWin`) or does not lose (without).
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
        // Playing directly below a cell where the other side wins loses at once.
        moves &= ~(threats &>> 1)
        if moves == 0 { return false }
        if count >= 40 { return !wantsWin }
        if let answer = Self.answerWithoutSearch(mover, occupied, wantsWin) { return answer }

        let key = Self.key(mover, occupied, count)
        let known = table.lookUp(key)
        if let answer = Self.answer(known, wantsWin) { return answer }
        if isExhausted { return false }

        let before = positions
        let first = candidates.first(count)
        let end = candidates.sort(moves, mover, occupied, count)
        var answer = false
        // A move with a known outcome saves all the work. Late in the game there is little to save.
        if count < Self.discsWithLittleWork {
            var candidate = first
            while candidate < end, !answer {
                let after = occupied | candidate.pointee.landing
                let known = table.lookUp(Self.key(mover ^ occupied, after, count &+ 1))
                answer =
                    Self.answer(known, !wantsWin) == false
                    || Self.answerByFollowing(mover ^ occupied, after, !wantsWin) == false
                candidate += 1
            }
        }
        var candidate = first
        while candidate < end, !answer {
            answer = !reaches(
                mover ^ occupied, occupied | candidate.pointee.landing, candidate.pointee.threats, count &+ 1,
                !wantsWin)
            candidate += 1
        }
        if isExhausted { return false }
        table.store(key, Self.learnt(answer, wantsWin, known), positions: positions &- before)
        return answer
    }

    @inline(__always) private static func key(_ mover: UInt64, _ occupied: UInt64, _ count: Int) -> UInt64 {
        count <= mostDiscsMirrored ? Position.symmetricKey(mover, occupied) : Position.key(mover, occupied)
    }

    /// Returns the answer that follows from the knowledge in the table, or nil if none does.
    @inline(__always) private static func answer(_ known: UInt32, _ wantsWin: Bool) -> Bool? {
        if wantsWin {
            if known == OutcomeTable.Known.win { return true }
            return known == OutcomeTable.Known.nothing || known == OutcomeTable.Known.atLeastDraw
                ? nil : false
        }
        if known >= OutcomeTable.Known.draw { return true }
        return known == OutcomeTable.Known.loss ? false : nil
    }

    /// Returns the knowledge after this answer, together with that before it.
    @inline(__always) private static func learnt(_ answer: Bool, _ wantsWin: Bool, _ known: UInt32) -> UInt32
    {
        if wantsWin {
            if answer { return OutcomeTable.Known.win }
            return known == OutcomeTable.Known.atLeastDraw
                ? OutcomeTable.Known.draw : OutcomeTable.Known.atMostDraw
        }
        if !answer { return OutcomeTable.Known.loss }
        return known == OutcomeTable.Known.atMostDraw
            ? OutcomeTable.Known.draw : OutcomeTable.Known.atLeastDraw
    }

    /// Returns the answer that the empty cells alone decide, or nil. They decide it if one side has no possible line
    /// left, or if the other side needs only to follow.
    @inline(__always) private static func answerWithoutSearch(
        _ mover: UInt64, _ occupied: UInt64, _ wantsWin: Bool
    ) -> Bool? {
        let empty = Position.cells & ~occupied
        if wantsWin {
            if !Position.hasLine(mover | empty) { return false }
        } else {
            if !Position.hasLine((mover ^ occupied) | empty) { return true }
        }
        return answerByFollowing(mover, occupied, wantsWin)
    }

    /// Answers a question where every column has an even number of discs, so that the other side can answer each disc
    /// with one on top of it.
    ///
    /// The other side then gets all even rows, and the mover all odd ones. Returns false if that does not reach the
    /// goal, otherwise nil.
    @inline(__always) private static func answerByFollowing(
        _ mover: UInt64, _ occupied: UInt64, _ wantsWin: Bool
    ) -> Bool? {
        guard (occupied &<< 1) & Position.evenRows == occupied & Position.evenRows else { return nil }
        let empty = Position.cells & ~occupied
        if Position.hasLine(mover | (empty & Position.oddRows)) { return nil }
        return wantsWin || Position.hasLine((mover ^ occupied) | (empty & Position.evenRows)) ? false : nil
    }
}
