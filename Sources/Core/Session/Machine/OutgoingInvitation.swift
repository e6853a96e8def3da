/// This session's request to a peer with which it has no conversation. Loop only.
final class OutgoingInvitation {
    /// A call of the program that waits for the outcome.
    struct Call {
        let token: CallToken
        /// When the call is answered at the latest, whatever becomes of the invitation.
        let deadline: Moment
    }

    /// The ID of the proposed conversation.
    let conversation: UInt64
    let context: [UInt8]
    /// The identity that the program took the peer for when it made the first call.
    let identity: PeerID
    /// The calls that get the outcome. The attempt lasts as long as the most patient of them.
    private(set) var calls: [Call]
    let attempt: Attempt
    /// Whether the request was sent, on the present link or on one that is over. If so, the peer may have accepted it.
    var wasSent = false
    /// Whether the request was begun again on all routes, because its link was lost.
    var isRepeated = false
    /// An introducer's token for the peer; empty without one.
    var introduction: [UInt8] = []
    /// The context of the peer's own invitation, if the peer withdrew it to accept this one.
    var crossedContext: [UInt8]?

    init(conversation: UInt64, context: [UInt8], to identity: PeerID, token: CallToken, attempt: Attempt) {
        self.conversation = conversation
        self.context = context
        self.identity = identity
        calls = [Call(token: token, deadline: attempt.deadline)]
        self.attempt = attempt
    }

    /// When something of the invitation is due.
    var nextDeadline: Moment { calls.reduce(attempt.nextDeadline) { min($0, $1.deadline) } }

    /// Lets one more call wait for the outcome. If the call is more patient than all others, the invitation lasts
    /// longer than its request has said, so the request is sent again when that time is over. The peer counts the time
    /// from when it has the request, and ends the link; this side does so only `lateness` later. Otherwise it would end
    /// a link on which the peer has just accepted.
    func add(_ call: Call, lateness: Moment.Span) {
        calls.append(call)
        guard call.deadline > attempt.deadline else { return }
        if attempt.requestSent {
            attempt.routeDeadline = min(attempt.routeDeadline, attempt.deadline + lateness)
        }
        attempt.deadline = call.deadline
        attempt.race.deadline = call.deadline
    }

    /// Removes the calls that `isOver` names and returns them. The others go on waiting, so there must be one.
    func removeCalls(where isOver: (Call) -> Bool) -> [Call] {
        let removed = calls.filter(isOver)
        calls.removeAll(where: isOver)
        attempt.deadline = calls.reduce(calls[0].deadline) { max($0, $1.deadline) }
        return removed
    }
}
