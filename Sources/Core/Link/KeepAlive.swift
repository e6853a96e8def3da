/// Decides when a link that has gone quiet is asked, suspected and lost.
///
/// Any byte from the other side counts as a sign of life, so a peer that is only slow or busy is never lost. Each step
/// counts from when the one before it was taken, not from when it was due: a loop that stood still has not listened, so
/// it asks and waits before it gives anybody up.
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

    private enum Stage {
        case listening
        case asked
        case suspected
    }

    private let askAfter: Moment.Span
    /// From asking to suspecting, and from there to losing.
    private let suspectAfterAsking: Moment.Span
    private let loseAfterSuspecting: Moment.Span

    private var stage = Stage.listening
    /// When that stage began; the last sign of life, while listening.
    private var since: Moment

    /// A quiet peer is asked after `askAfter`, suspected after twice that, or half-way between asking and losing if that is
    /// earlier, and lost after `loseAfter`. Where `loseAfter` leaves no time to ask, a third of it is taken for `askAfter`.
    init(askAfter: Duration, loseAfter: Duration, now: Moment) {
        let lose = max(Moment.Span(loseAfter).nanoseconds, 3)
        let wanted = Moment.Span(askAfter).nanoseconds
        let ask = wanted > 0 && wanted < lose ? wanted : lose / 3
        let suspect = min(ask, (lose - ask) / 2)
        self.askAfter = Moment.Span(nanoseconds: ask)
        suspectAfterAsking = Moment.Span(nanoseconds: suspect)
        loseAfterSuspecting = Moment.Span(nanoseconds: lose - ask - suspect)
        since = now
    }

    var isSuspected: Bool { stage == .suspected }

    /// Notes a sign of life; true when that ends a suspicion.
    @inline(__always)
    mutating func heard(at now: Moment) -> Bool {
        since = now
        guard stage != .listening else { return false }
        defer { stage = .listening }
        return stage == .suspected
    }

    /// When `check` has something to say next, if nothing is heard until then.
    var deadline: Moment {
        switch stage {
        case .listening: since + askAfter
        case .asked: since + suspectAfterAsking
        case .suspected: since + loseAfterSuspecting
        }
    }

    mutating func check(at now: Moment) -> Verdict {
        guard deadline <= now else { return .wait }
        since = now
        switch stage {
        case .listening:
            stage = .asked
            return .ask
        case .asked:
            stage = .suspected
            return .suspect
        case .suspected: return .lose
        }
    }
}
