/// Decides when a silent link is pinged, suspected and lost.
///
/// Any byte from the other side counts as a sign of life, so a peer that is only slow or busy is never lost. But bytes
/// that never become a whole record of TLS do not count for ever: if the length of a record was changed on the way,
/// everything that follows would be taken for its rest.
///
/// Each step counts from the time when the step before it was taken, not from when that was due. A loop that stood
/// still has not listened, so it pings and waits before it gives up a peer.
struct KeepAlive {
    enum Verdict: Equatable {
        /// Send a ping.
        case sendPing
        /// The ping was sent, and still nothing was received.
        case suspect
        /// Give up the link.
        case giveUp
        case wait
    }

    private enum Stage {
        case listening
        case pinged
        case suspected
    }

    private let pingAfter: Moment.Span
    /// The times from the ping to the suspicion, and from there to the loss.
    private let suspectAfterPing: Moment.Span
    private let loseAfterSuspecting: Moment.Span

    private var stage = Stage.listening
    /// The time when the stage began. In the stage `listening`, the time of the last sign of life.
    private var since: Moment
    /// When something whole was last received.
    private var wholeAt: Moment
    /// For this long after `wholeAt`, bytes that complete nothing count as a sign of life.
    private let partialInputLimit: Moment.Span

    /// Creates the state of a link that was heard at `now`.
    ///
    /// A silent peer is pinged after `pingAfter`. It is suspected after twice that time, or half-way between the
    /// ping and the loss if that is earlier. It is lost after `loseAfter`. If `loseAfter` leaves no time for a
    /// ping, the ping is sent after a third of it.
    init(pingAfter: Duration, loseAfter: Duration, now: Moment) {
        let total = max(Moment.Span(loseAfter).nanoseconds, 3)
        let wanted = Moment.Span(pingAfter).nanoseconds
        let ping = wanted > 0 && wanted < total ? wanted : total / 3
        let suspect = min(ping, (total - ping) / 2)
        self.pingAfter = Moment.Span(nanoseconds: ping)
        suspectAfterPing = Moment.Span(nanoseconds: suspect)
        loseAfterSuspecting = Moment.Span(nanoseconds: total - ping - suspect)
        partialInputLimit = Moment.Span(nanoseconds: total)
        since = now
        wholeAt = now
    }

    var isSuspected: Bool { stage == .suspected }

    /// Notes that bytes were received, and whether they completed anything. Returns true if that ends a suspicion.
    @inline(__always)
    mutating func noteBytes(isWhole: Bool, at now: Moment) -> Bool {
        if isWhole {
            wholeAt = now
        } else if now - wholeAt > partialInputLimit {
            return false
        }
        since = now
        guard stage != .listening else { return false }
        defer { stage = .listening }
        return stage == .suspected
    }

    /// The time of the next step, if nothing is received until then.
    var deadline: Moment {
        switch stage {
        case .listening: since + pingAfter
        case .pinged: since + suspectAfterPing
        case .suspected: since + loseAfterSuspecting
        }
    }

    mutating func check(at now: Moment) -> Verdict {
        guard deadline <= now else { return .wait }
        since = now
        switch stage {
        case .listening:
            stage = .pinged
            return .sendPing
        case .pinged:
            stage = .suspected
            return .suspect
        case .suspected: return .giveUp
        }
    }
}
