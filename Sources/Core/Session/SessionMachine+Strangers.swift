// Pipes that came in and have no conversation yet: how many there may be, and which of them makes room for the next.

extension SessionMachine {
    /// So long a pipe on which somebody has begun to say who is there keeps its place, whoever comes.
    private static let courtesy = Moment.Span.seconds(1)

    /// How many there are. One with an invitation counts: refused, it lingers like any other.
    var strangerCount: Int { links.values.reduce(0) { $1.isStranger ? $0 + 1 : $0 } }

    /// Whether one more may come in; where all places are taken, one that makes no use of its own is ended for it.
    ///
    /// Opening pipes costs nothing, so who only does that must not keep others out. A pipe on which nothing has come gives
    /// way at once, the oldest first: whoever wants something speaks within a round trip. The others had to compute
    /// something, and are left the time that a slow device takes for a handshake, so that a crowd of honest peers does
    /// not drive itself out; then those that have not proven a key go before those that have. An invitation that waits
    /// for the program has its own limit, and stays.
    func hasRoomForStranger(now: Moment) -> Bool {
        guard strangerCount >= limits.unauthenticatedPipes else { return true }
        let leaving = links.values.filter { $0.isStranger && $0.purpose == .unsettled }
            .filter { $0.machine.phase == .preface || $0.openedAt + Self.courtesy <= now }
            .min { ($0.progress, $0.number) < ($1.progress, $1.number) }
        guard let leaving else { return false }
        statistics.pipesRefused += 1
        close(leaving, .tooManyLinks)
        return true
    }
}

extension Link {
    fileprivate var isStranger: Bool { dial == nil && (purpose == .unsettled || purpose == .invited) }

    /// How much whoever is there has done so far.
    fileprivate var progress: Int {
        if machine.phase == .preface { return 0 }
        return machine.provenPeer == nil ? 1 : 2
    }
}
