import NighCore

/// Decides which peers a session invites without being asked, and when. A value without I/O: its owner makes the
/// invitations and reports changes of peers.
struct AutomaticInvitations {
    private static let firstPause = Moment.Span.milliseconds(500)
    private static let longestPause = Moment.Span.seconds(30)

    private enum Standing {
        /// Invite the peer at this moment.
        case due(Moment)
        case inviting
        /// Do not invite the peer until this session is paired with it.
        case unpaired
        /// Do not invite the peer until it is lost and found again: it declined, or the conversation ended in good
        /// order.
        case finished
    }

    private struct Candidate {
        var standing: Standing
        var nextPause = AutomaticInvitations.firstPause
    }

    private var candidates: [PeerID: Candidate] = [:]

    /// The peer can be invited.
    mutating func available(_ peer: PeerID, at now: Moment) {
        if candidates[peer] == nil { candidates[peer] = Candidate(standing: .due(now)) }
    }

    /// The peer can no longer be reached.
    mutating func lost(_ peer: PeerID) { candidates[peer] = nil }

    /// A conversation with the peer began, by an invitation of either side.
    mutating func connected(_ peer: PeerID) { candidates[peer] = Candidate(standing: .inviting) }

    /// The conversation with the peer ended. After an end in good order the peer is left alone; after a failure it is
    /// invited again.
    mutating func disconnected(_ peer: PeerID, because error: NighError, at now: Moment) {
        switch error.cause {
        case .left, .peerLeft: finish(peer)
        default: candidates[peer] = Candidate(standing: .due(now + Self.firstPause))
        }
    }

    /// This side's program ends the conversation or does not want one.
    mutating func finish(_ peer: PeerID) { candidates[peer] = Candidate(standing: .finished) }

    /// This session was paired with the peer.
    mutating func paired(_ peer: PeerID, at now: Moment) {
        guard case .unpaired? = candidates[peer]?.standing else { return }
        candidates[peer] = Candidate(standing: .due(now))
    }

    /// The invitation of the peer failed.
    ///
    /// - Parameter isPaired: whether this session is paired with the peer.
    mutating func failed(_ peer: PeerID, because error: NighError, isPaired: Bool, at now: Moment) {
        guard var candidate = candidates[peer], case .inviting = candidate.standing else { return }
        // An invitation that nobody answered would only disturb the person again.
        let isUnanswered = error.stage == .inviting && error.cause == .timedOut
        switch error.cause {
        case .notPaired where !isPaired:
            candidates[peer]?.standing = .unpaired
            return
        // The other side may not have noted the pairing yet, and this one may have room for another peer later.
        case .notPaired, .limit: break
        default: guard error.isRetryable, !isUnanswered else { return finish(peer) }
        }
        let pause = max(candidate.nextPause, error.retryAfter.map(Moment.Span.init) ?? .zero)
        candidate.standing = .due(now + pause)
        candidate.nextPause = min(candidate.nextPause + candidate.nextPause, Self.longestPause)
        candidates[peer] = candidate
    }

    /// The peers to invite now, in a fixed order.
    mutating func takeDue(at now: Moment) -> [PeerID] {
        let due = candidates.compactMap { id, candidate -> PeerID? in
            if case .due(let moment) = candidate.standing, moment <= now { id } else { nil }
        }
        for peer in due { candidates[peer]?.standing = .inviting }
        return due.sorted()
    }

    /// When a peer is next due; nil if none is.
    var nextMoment: Moment? {
        candidates.values.compactMap { candidate -> Moment? in
            if case .due(let moment) = candidate.standing { moment } else { nil }
        }.min()
    }
}
