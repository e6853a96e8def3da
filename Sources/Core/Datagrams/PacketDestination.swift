/// Chooses where the packets of a path go: to the place that the other side has offered or, after it has moved, to the
/// place from which it has answered.
///
/// A stranger who sees a packet can send it on from another place. So before a new place has answered, it gets only
/// questions and answers, and no more bytes than came from it.
struct PacketDestination {
    /// Nil before the other side's offer has come.
    private(set) var place: DatagramSource?
    /// Where the other side's last packet came from, if that is elsewhere and has not answered; and how many bytes more
    /// may go there before it has.
    private var candidate: (place: DatagramSource, budget: Int, token: UInt64)?

    /// Whether packets come from a place that has not answered yet.
    var hasCandidate: Bool { candidate != nil }

    /// Begins with the place that the other side has offered.
    mutating func begin(at place: DatagramSource) { self.place = place }

    /// Notes where the other side's newest packet came from.
    ///
    /// - Parameter generator: makes the token that a new place has to answer.
    mutating func note(_ source: DatagramSource, byteCount: Int, generator: inout SeededGenerator) {
        guard source != place else {
            candidate = nil
            return
        }
        if candidate?.place != source { candidate = (source, 0, generator.next()) }
        candidate?.budget += byteCount
    }

    /// Returns where an answer of `byteCount` bytes goes: to the source of the question if that is a new place with
    /// enough budget left, otherwise where all packets go.
    mutating func answerPlace(_ source: DatagramSource, byteCount: Int) -> DatagramSource? {
        guard let candidate, candidate.place == source, candidate.budget >= byteCount else { return place }
        self.candidate?.budget -= byteCount
        return source
    }

    /// Returns the probe of a new place, for a packet of `byteCount` bytes. Nil if there is no new place, or if its
    /// budget is too small.
    mutating func takeProbe(byteCount: Int) -> (token: UInt64, place: DatagramSource)? {
        guard let candidate, candidate.budget >= byteCount else { return nil }
        self.candidate?.budget -= byteCount
        return (candidate.token, candidate.place)
    }

    /// Notes an answer. Returns whether it comes from a new place. Packets go there from now on.
    mutating func noteAnswer(_ token: UInt64) -> Bool {
        guard let candidate, candidate.token == token else { return false }
        place = candidate.place
        self.candidate = nil
        return true
    }
}
