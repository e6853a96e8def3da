// How this session answers who asks it for a conversation, and what happens when both sides ask at once.
//
// Both asking at once: the side with the greater PeerID decides. Once it has sent its request it turns the other's link
// down ("superseded"), and the other accepts the request it gets; if the other's request comes first, it accepts that
// one and gives its own dial up. So exactly one of the two requests is ever answered with yes.

extension SessionMachine {
    // MARK: The program's answers

    /// The program says yes. Nothing happens where the invitation is over.
    func accept(_ invitation: Invitation, now: Moment) {
        guard let (peer, pending) = pending(invitation) else { return }
        accept(pending, of: peer, token: nil, now: now)
    }

    private func pending(_ invitation: Invitation) -> (PeerRecord, PendingInvitation)? {
        guard let peer = peers[invitation.peer.id], let pending = peer.invitation,
            pending.number == invitation.number
        else { return nil }
        return (peer, pending)
    }

    func accept(_ invitation: PendingInvitation, of peer: PeerRecord, token: CallToken?, now: Moment) {
        guard engagedPeers < limits.peers else {
            decline(peer, invitation, code: .full, words: "", retryAfter: Self.pauseWhenCrowded)
            return refuse(token, .limit("peers", limits.peers), peer: peer.label)
        }
        move(peer, to: .settling)
        let agreed = agree(to: invitation.request, on: invitation.link, with: peer, now: now)
        finish(token.map { [$0] } ?? [], with: peer, agreed: agreed)
    }

    /// The program says no.
    func decline(_ invitation: Invitation, words: String, retryAfter: Duration) {
        guard let (peer, pending) = pending(invitation) else { return }
        // Rounded up: no time at all would mean no for good.
        let (whole, rest) = retryAfter.components
        let seconds = UInt32(clamping: rest > 0 ? whole + 1 : whole)
        decline(peer, pending, code: .declined, words: words, retryAfter: seconds)
    }

    func decline(
        _ peer: PeerRecord, _ invitation: PendingInvitation, code: ConversationRefusal.Code, words: String,
        retryAfter: UInt32
    ) {
        peer.phase = .available(nil)
        refuse(invitation.request, on: invitation.link, code, words: words, retryAfter: retryAfter)
        settle(peer)
    }

    // MARK: Being asked

    /// The other side of an accepted link asks for a conversation, or for one to go on.
    func requestReceived(_ request: ConversationRequest, isResume: Bool, on link: Link, now: Moment) {
        guard let peer = link.peer, link.machine.side == .accepting, link.purpose == .unsettled else {
            return violated(link, "a request out of turn", now: now)
        }
        guard mayTalk(to: peer.id) else { return close(link, .notPaired) }
        guard noteRequestsSeen(request.attempt, from: peer, on: link) else {
            return refuse(request, on: link, .outOfDate)
        }
        if let attempt = peer.attempt {
            let goesOn = peer.conversation != nil
            if case .asking(let own) = peer.phase, own.conversation == request.conversation {
                // They have accepted this session's invitation already, but the word of it was lost on the way.
                return settleAttempt(of: peer, by: request, on: link, now: now)
            }
            if isResume == goesOn, attempt.requestSent, hello.peer > peer.id {
                return close(link, .superseded)
            }
            if !isResume, !goesOn {
                return settleAttempt(of: peer, by: request, on: link, now: now)
            }
        }
        if let conversation = peer.conversation {
            if conversation.id == request.conversation {
                abandonAttempt(of: peer, code: .superseded)
                _ = agree(to: request, on: link, with: peer, now: now)
                return
            }
            if isResume { return refuse(request, on: link, .unknownConversation) }
            // The peer would not invite if it still knew of the conversation.
            endConversation(of: peer, cause: .peerLeft, now: now)
        } else if isResume {
            return refuse(request, on: link, .unknownConversation)
        }
        consider(request, on: link, from: peer, now: now)
    }

    /// Both sides want each other: this session's own request is settled by accepting the peer's.
    private func settleAttempt(
        of peer: PeerRecord, by request: ConversationRequest, on link: Link, now: Moment
    ) {
        guard case .asking(let own) = peer.phase else { return }
        // Not "superseded": the conversation proposed there will never be.
        abandonAttempt(of: peer)
        finish(own.tokens, with: peer, agreed: agree(to: request, on: link, with: peer, now: now))
    }

    /// How many seconds somebody should wait who is refused for lack of room, which may pass.
    private static let pauseWhenCrowded: UInt32 = 2

    /// Puts an invitation before the program, or refuses it by rule.
    private func consider(_ request: ConversationRequest, on link: Link, from peer: PeerRecord, now: Moment) {
        guard !isClosing else { return close(link, .sessionClosed) }
        guard engagedPeers < limits.peers else {
            return refuse(request, on: link, .full, retryAfter: Self.pauseWhenCrowded)
        }
        if peer.invitation != nil { endInvitation(of: peer, cause: .superseded, code: .superseded) }
        let waiting = peers.values.reduce(0) { $0 + ($1.invitation == nil ? 0 : 1) }
        guard waiting < limits.pendingInvitations else {
            return refuse(request, on: link, .busy, retryAfter: Self.pauseWhenCrowded)
        }
        link.purpose = .invited
        let timeout = Moment.Span.milliseconds(Int64(request.timeoutMilliseconds))
        let invitation = PendingInvitation(
            number: nextNumber(), link: link, request: request, deadline: now + timeout)
        if peer.state == .unavailable {
            move(peer, to: .available(invitation))
        } else {
            peer.phase = .available(invitation)
        }
        watch(peer)
        output(.tell(.invited(describe(invitation, from: peer))))
    }

    func describe(_ invitation: PendingInvitation, from peer: PeerRecord) -> Invitation {
        Invitation(
            number: invitation.number, peer: snapshot(of: peer), context: invitation.request.context,
            transport: transports[invitation.link.transport].scheme)
    }

    /// An invitation is over without the program's answer.
    func endInvitation(of peer: PeerRecord, cause: NighError.Cause, code: LinkClose.Code) {
        guard let invitation = peer.invitation else { return }
        peer.phase = .available(nil)
        close(invitation.link, code)
        let error = NighError(.inviting, cause, peer: peer.label)
        output(.tell(.invitationEnded(describe(invitation, from: peer), cause: error)))
        settle(peer)
    }

    func refuse(
        _ request: ConversationRequest, on link: Link, _ code: ConversationRefusal.Code, words: String = "",
        retryAfter: UInt32 = 0
    ) {
        statistics.refusals["\(code)", default: 0] += 1
        link.machine.send(
            ConversationRefusal(
                conversation: request.conversation, code: code, retryAfterSeconds: retryAfter, words: words))
        // The asking side closes the link once it has read this; until then it counts as unsettled.
        link.purpose = .unsettled
        markDirty(link)
        watch(link)
    }

    /// Says yes to a request and begins, or goes on with, the conversation on this link.
    private func agree(
        to request: ConversationRequest, on link: Link, with peer: PeerRecord, now: Moment
    ) -> Bool {
        let conversation = conversation(request.conversation, with: peer, link: link)
        link.machine.send(
            ConversationAcceptance(
                conversation: request.conversation, attempt: requestsMade,
                standing: conversation.standingForNewLink()))
        return carry(conversation, on: link, with: peer, peerStanding: request.standing, now: now)
    }

    func finish(_ tokens: [CallToken], with peer: PeerRecord, agreed: Bool) {
        let error = NighError(.inviting, .protocolViolation("an impossible beginning"), peer: peer.label)
        for token in tokens { output(.finish(token, agreed ? .success(peer.id) : .failure(error))) }
    }

    /// Notes a request's number; false when a later one was seen already, so that this one is out of date.
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
