/// Decides when a link that has gone quiet is asked, suspected and lost.
///
/// Any byte from the other side counts as a sign of life, so a peer that is only slow or busy is never lost.
struct KeepAlive {
    enum Verdict: Equatable {
        /// Send a ping.
        case ask
        /// Asked, and still nothing.
        case suspect
        /// Give the link up.
        case lose
        case wait
    }

    private let askAfter: Moment.Span
    private let suspectAfter: Moment.Span
    private let loseAfter: Moment.Span

    private(set) var lastHeard: Moment
    private var lastAsked: Moment
    private(set) var isSuspected = false

    init(askAfter: Duration, loseAfter: Duration, now: Moment) {
        self.askAfter = Moment.Span(askAfter)
        self.loseAfter = Moment.Span(loseAfter)
        suspectAfter = min(self.askAfter + self.askAfter, self.loseAfter)
        lastHeard = now
        lastAsked = now
    }

    /// Notes a sign of life; true when that ends a suspicion.
    @inline(__always)
    mutating func heard(at now: Moment) -> Bool {
        lastHeard = now
        guard isSuspected else { return false }
        isSuspected = false
        return true
    }

    /// When `check` has something to say next, if nothing is heard until then.
    var deadline: Moment {
        if lastAsked < lastHeard + askAfter { return lastHeard + askAfter }
        return isSuspected ? lastHeard + loseAfter : lastHeard + suspectAfter
    }

    mutating func check(at now: Moment) -> Verdict {
        let quiet = now - lastHeard
        if quiet >= loseAfter { return .lose }
        if quiet >= suspectAfter, !isSuspected {
            isSuspected = true
            return .suspect
        }
        if quiet >= askAfter, lastAsked < lastHeard + askAfter {
            lastAsked = now
            return .ask
        }
        return .wait
    }
}
