// How this session answers a peer that asks for a conversation, and what happens when both sides ask at once.
//
// If both sides ask at once, the side with the greater PeerID decides. If it has sent its request already, it closes
// the other side's link ("superseded"), and the other side accepts the request that it gets. If the other side's
// request comes first, it accepts that request and gives its own dial up. So exactly one of the two requests is
// accepted. The side that accepts also sends the context of its own request, so that both programs have the other's.

extension SessionMachine {
    // MARK: The program's answers

    /// Accepts an invitation for the program. Does nothing if the invitation is over.
    mutating func accept(_ invitation: Invitation, now: Moment) {
        guard let (peer, pending) = pending(invitation) else { return }
        accept(pending, of: peer, now: now)
    }

    private func pending(_ invitation: Invitation) -> (PeerRecord, IncomingInvitation)? {
        guard let peer = peers[invitation.peer.id], let pending = peer.invitation,
            pending.number == invitation.number
        else { return nil }
        return (peer, pending)
    }

    /// Accepts an invitation that was reported to the program. If there is no room for one more peer, the invitation is
    /// declined, and the program is notified.
    ///
    /// - Parameters:
    ///   - own: the context of the program's own invitation, if it accepts by inviting.
    ///   - token: the call that gets the outcome.
    mutating func accept(
        _ invitation: IncomingInvitation, of peer: PeerRecord, inviting own: [UInt8]? = nil,
        token: CallToken? = nil, now: Moment
    ) {
        guard engagedPeers < limits.peers else {
            let described = describe(invitation, from: peer)
            decline(peer, invitation, code: .full, reason: "", retryAfter: Self.retryAfterWhenFull)
            if token != nil { return refuse(token, .limit("peers", limits.peers), peer: peer.label) }
            let error = NighError(.inviting, .limit("peers", limits.peers), peer: peer.label)
            return report(.invitationEnded(described, error))
        }
        changePhase(of: peer, to: .settling)
        let agreed = acceptRequest(
            invitation.request, on: invitation.link, with: peer, inviting: own, now: now)
        finish(token.map { [$0] } ?? [], with: peer, agreed: agreed)
    }

    /// Declines an invitation for the program.
    mutating func decline(_ invitation: Invitation, reason: String, retryAfter: Duration) {
        guard let (peer, pending) = pending(invitation) else { return }
        // Rounded up, because zero means that the answer is final.
        let (whole, rest) = retryAfter.components
        let seconds = UInt32(clamping: rest > 0 ? whole + 1 : whole)
        decline(peer, pending, code: .declined, reason: reason, retryAfter: seconds)
    }

    mutating func decline(
        _ peer: PeerRecord, _ invitation: IncomingInvitation, code: ConversationRefusal.Code, reason: String,
        retryAfter: UInt32
    ) {
        peer.phase = .available(nil)
        refuse(invitation.request, on: invitation.link, code, reason: reason, retryAfter: retryAfter)
        updateState(of: peer)
    }

    // MARK: Requests of peers

    /// Handles a request for a conversation, or for a conversation to resume, on an accepted link.
    mutating func requestReceived(_ request: ConversationRequest, isResume: Bool, on link: Link, now: Moment)
    {
        guard let peer = link.peer, link.machine.side == .accepting, link.purpose == .unsettled else {
            return violated(link, "a request at the wrong time", now: now)
        }
        guard mayConverse(with: peer.id) else { return close(link, .notPaired) }
        guard noteRequestsSeen(request.attempt, from: peer, on: link) else {
            return refuse(request, on: link, .outOfDate)
        }
        if let attempt = peer.attempt {
            let goesOn = peer.conversation != nil
            if case .inviting(let own) = peer.phase, own.conversation == request.conversation {
                // The peer has already accepted this session's invitation, but its acceptance was lost on the way.
                return resolveAttempt(of: peer, by: request, on: link, now: now)
            }
            if isResume == goesOn, attempt.requestSent, hello.peer > peer.id {
                return close(link, .superseded)
            }
            if !isResume, !goesOn {
                return resolveAttempt(of: peer, by: request, on: link, now: now)
            }
        }
        if let conversation = peer.conversation {
            if isResume, conversation.ownInvitation == request.conversation {
                _ = conversation.continueAsOwnInvitation()
            }
            if conversation.id == request.conversation {
                if isResume, conversation.hasOvertaken(request.standing) {
                    return refuse(request, on: link, .outOfDate)
                }
                abandonAttempt(of: peer, code: .superseded)
                // If the peer invites again, the first acceptance was lost, and the context with it.
                let own = isResume ? nil : conversation.crossedContext
                _ = acceptRequest(request, on: link, with: peer, inviting: own, now: now)
                return
            }
            if isResume { return refuse(request, on: link, .unknownConversation) }
            // The peer would not invite if it still knew the conversation.
            endConversation(of: peer, cause: .peerLeft, now: now)
        } else if isResume {
            return refuse(request, on: link, .unknownConversation)
        }
        consider(request, on: link, from: peer, now: now)
    }

    /// Resolves this session's own request by accepting the peer's, because both sides ask each other.
    private mutating func resolveAttempt(
        of peer: PeerRecord, by request: ConversationRequest, on link: Link, now: Moment
    ) {
        guard case .inviting(let own) = peer.phase else { return }
        let isCrossing = own.conversation != request.conversation
        // "Cancelled": the conversation proposed there will never exist. If it is the one that the peer resumes, it
        // does.
        abandonAttempt(of: peer, code: isCrossing ? .cancelled : .superseded)
        let agreed = acceptRequest(
            request, on: link, with: peer, inviting: isCrossing ? own.context : nil, now: now)
        if agreed, isCrossing {
            // The side with the greater PeerID accepts only if its own request is on no link. If it was on one that was
            // lost, the peer may have accepted it there, and does not know that this side accepts the peer's.
            if own.wasSent, hello.peer > peer.id { peer.conversation?.ownInvitation = own.conversation }
            report(.invitationsCrossed(snapshot(of: peer), context: request.context))
        }
        finish(own.calls.map(\.token), with: peer, agreed: agreed)
    }

    /// Notes the context of the peer's own invitation. Its acceptance of this session's invitation follows.
    func crossedContextReceived(_ context: [UInt8], on link: Link) {
        guard let peer = link.peer, case .inviting(let own) = peer.phase, own.attempt.link === link else {
            return
        }
        own.crossedContext = context
    }

    /// How many seconds a peer should wait before it asks again, if it was refused for lack of room. There may be room
    /// then.
    private static let retryAfterWhenFull: UInt32 = 2

    /// Passes an invitation to the program, or refuses it by rule.
    private mutating func consider(
        _ request: ConversationRequest, on link: Link, from peer: PeerRecord, now: Moment
    ) {
        guard !isClosing else { return close(link, .sessionClosed) }
        guard engagedPeers < limits.peers else {
            return refuse(request, on: link, .full, retryAfter: Self.retryAfterWhenFull)
        }
        if peer.invitation != nil { endInvitation(of: peer, cause: .superseded, code: .superseded) }
        guard census.invitations < limits.pendingInvitations else {
            return refuse(request, on: link, .busy, retryAfter: Self.retryAfterWhenFull)
        }
        link.purpose = .invited
        let timeout = Moment.Span.milliseconds(Int64(request.timeoutMilliseconds))
        let invitation = IncomingInvitation(
            number: nextNumber(), link: link, request: request, deadline: now + timeout)
        if peer.state == .unavailable {
            changePhase(of: peer, to: .available(invitation))
        } else {
            peer.phase = .available(invitation)
        }
        watch(peer)
        report(.invited(describe(invitation, from: peer)))
    }

    func describe(_ invitation: IncomingInvitation, from peer: PeerRecord) -> Invitation {
        Invitation(
            number: invitation.number, peer: snapshot(of: peer), context: invitation.request.context,
            transport: transports[invitation.link.transport].scheme,
            introduction: invitation.link.introduction)
    }

    /// Ends an invitation without the program's answer.
    mutating func endInvitation(of peer: PeerRecord, cause: NighError.Cause, code: LinkClose.Code) {
        guard let invitation = peer.invitation else { return }
        peer.phase = .available(nil)
        close(invitation.link, code)
        let error = NighError(.inviting, cause, peer: peer.label)
        report(.invitationEnded(describe(invitation, from: peer), error))
        updateState(of: peer)
    }

    mutating func refuse(
        _ request: ConversationRequest, on link: Link, _ code: ConversationRefusal.Code, reason: String = "",
        retryAfter: UInt32 = 0
    ) {
        statistics.refusals["\(code)", default: 0] += 1
        link.machine.send(
            ConversationRefusal(
                conversation: request.conversation, code: code, retryAfterSeconds: retryAfter, reason: reason)
        )
        // The asking side closes the link after it has read the refusal. Until then the link counts as unsettled.
        link.purpose = .unsettled
        markDirty(link)
        watch(link)
    }

    /// Accepts a request, and begins or continues the conversation on this link.
    ///
    /// - Parameter own: the context of this session's own invitation, if it gives one up.
    private mutating func acceptRequest(
        _ request: ConversationRequest, on link: Link, with peer: PeerRecord, inviting own: [UInt8]? = nil,
        now: Moment
    ) -> Bool {
        let conversation = conversation(request.conversation, with: peer, link: link)
        if let own {
            conversation.crossedContext = own
            link.machine.send(crossedContext: own)
        }
        link.machine.send(
            ConversationAcceptance(
                conversation: request.conversation, attempt: requestsMade,
                standing: conversation.standingForNewLink()))
        return carry(conversation, on: link, with: peer, peerStanding: request.standing, now: now)
    }

    mutating func finish(_ tokens: [CallToken], with peer: PeerRecord, agreed: Bool) {
        guard !agreed else { return tokens.forEach { output(.finish($0, .success(peer.id))) } }
        let error = NighError(
            .inviting, .protocolViolation("impossible counts at the beginning of a conversation"),
            peer: peer.label)
        for token in tokens { output(.finish(token, .failure(error))) }
    }

    /// Notes the number of a request. Returns false if it is not higher than all numbers seen before, which means that
    /// the request is out of date.
    @discardableResult
    func noteRequestsSeen(_ number: UInt64, from peer: PeerRecord, on link: Link) -> Bool {
        let incarnation = link.machine.peerHello?.incarnation ?? 0
        if peer.requestsSeenFrom != incarnation {
            peer.requestsSeenFrom = incarnation
            peer.requestsSeen = 0
        }
        let isNew = number > peer.requestsSeen
        peer.requestsSeen = max(peer.requestsSeen, number)
        return isNew
    }
}

extension Conversation {
    /// Goes on under the ID of this side's own invitation, because the peer has accepted that one. Returns false if
    /// there is no such ID.
    func continueAsOwnInvitation() -> Bool {
        guard let own = ownInvitation.take() else { return false }
        id = own
        return true
    }
}
