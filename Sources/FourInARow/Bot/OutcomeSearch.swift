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
    /// From so many discs on, what is known about the moves of a position is not looked up before trying them.
    private static var discsWithLittleWork: Int { 30 }

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
        if let answer = Self.answerWithoutSearch(mover, occupied, wantsWin) { return answer }

        let key = Self.key(mover, occupied, count)
        let known = table.known(key)
        if let answer = Self.answer(known, wantsWin) { return answer }
        if isExhausted { return false }

        let before = positions
        let first = candidates.first(count)
        let end = candidates.sort(moves, mover, occupied, count)
        var answer = false
        // A move whose end is known already saves all the work; late in the game there is little to save.
        if count < Self.discsWithLittleWork {
            var candidate = first
            while candidate < end, !answer {
                let after = occupied | candidate.pointee.landing
                let known = table.known(Self.key(mover ^ occupied, after, count &+ 1))
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
        table.keep(key, Self.learnt(answer, wantsWin, known), positions: positions &- before)
        return answer
    }

    @inline(__always) private static func key(_ mover: UInt64, _ occupied: UInt64, _ count: Int) -> UInt64 {
        count <= mostDiscsMirrored ? Position.symmetricKey(mover, occupied) : Position.key(mover, occupied)
    }

    /// What is known already says about a question; nil if nothing.
    @inline(__always) private static func answer(_ known: UInt32, _ wantsWin: Bool) -> Bool? {
        if wantsWin {
            if known == OutcomeTable.Known.win { return true }
            return known == OutcomeTable.Known.nothing || known == OutcomeTable.Known.atLeastDraw
                ? nil : false
        }
        if known >= OutcomeTable.Known.draw { return true }
        return known == OutcomeTable.Known.loss ? false : nil
    }

    /// What is known after this answer, and was known before.
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

    /// What the empty cells alone decide: no line is left for one side, or the other side needs only follow.
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

    /// Where every column has an even number of discs, the other side can answer each disc with one on top of it.
    ///
    /// Then it gets all even rows, and the mover all odd ones: false if that does not reach the goal, else nil.
    @inline(__always) private static func answerByFollowing(
        _ mover: UInt64, _ occupied: UInt64, _ wantsWin: Bool
    ) -> Bool? {
        guard (occupied &<< 1) & Position.evenRows == occupied & Position.evenRows else { return nil }
        let empty = Position.cells & ~occupied
        if Position.hasLine(mover | (empty & Position.oddRows)) { return nil }
        return wantsWin || Position.hasLine((mover ^ occupied) | (empty & Position.evenRows)) ? false : nil
    }
}
