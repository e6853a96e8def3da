// Pipes that came in and have no conversation yet: how many there may be, and which of them makes room for the next.

extension SessionMachine {
    /// How many there are. One with an invitation counts: refused, it lingers like any other.
    var strangerCount: Int { links.values.reduce(0) { $1.isStranger ? $0 + 1 : $0 } }

    /// Whether one more may come in; where all places are taken, one that has its place for long is ended for it.
    ///
    /// Opening pipes costs nothing, so who only does that must not keep others out. There are two groups: pipes on which
    /// nothing has come yet, and those on which somebody has begun to say who is there. The larger one gives up its
    /// oldest. So neither can take more than half of the places from the other: an honest peer, which speaks as soon as
    /// its pipe is open, goes only where half as many as there are places have come after it before its first bytes,
    /// or as many have begun a handshake before it was through with its own. A key that was proven does not count:
    /// anybody can make keys. An invitation that waits for the program has its own limit, and stays.
    func hasRoomForStranger() -> Bool {
        guard strangerCount >= limits.unauthenticatedPipes else { return true }
        let waiting = links.values.filter { $0.isStranger && $0.purpose == .unsettled }
        let silent = waiting.filter { $0.machine.phase == .preface }
        let begun = waiting.filter { $0.machine.phase != .preface }
        let larger = silent.count >= begun.count ? silent : begun
        guard let oldest = larger.min(by: { $0.number < $1.number }) else { return false }
        statistics.pipesRefused += 1
        close(oldest, .tooManyLinks, because: .limit("unauthenticated pipes", limits.unauthenticatedPipes))
        return true
    }
}

extension Link {
    fileprivate var isStranger: Bool { dial == nil && (purpose == .unsettled || purpose == .invited) }
}
