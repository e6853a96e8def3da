// How a conversation begins: this side asks along one route after another, or answers; when both ask at once, one
// link is agreed on.
//
// Both asking at once: the side with the greater PeerID decides. Once it has sent its request it turns the other's link
// down ("superseded"), and the other accepts the request it gets; if the other's request comes first, it accepts that
// one and gives its own dial up. So exactly one of the two requests is ever answered with yes.

extension SessionMachine {
    // MARK: The program's calls

    /// Asks a known peer for a conversation. The outcome is told under `token`.
    func invite(_ id: PeerID, context: [UInt8], timeout: Duration, token: CallToken, now: Moment) {
        guard let peer = peers[id] else { return refuse(token, .unknownPeer, peer: id.short) }
        guard context.count <= limits.invitationContext else {
            return refuse(token, .limit("invitation context", limits.invitationContext), peer: peer.label)
        }
        switch peer.state {
        case .connected, .reconnecting:
            if peer.departure != nil { return refuse(token, .left, peer: peer.label) }
            return output(.finish(token, .success(id)))
        case .connecting:
            if peer.attempt != nil {
                peer.attempt?.tokens.append(token)
            } else {
                refuse(token, .cancelled, peer: peer.label)
            }
            return
        case .available: break
        case .unavailable, .disconnected: return refuse(token, .noRoute, peer: peer.label)
        }
        if let invitation = peer.invitation {
            accept(invitation: invitation.number, token: token, now: now)
            return
        }
        guard !isClosing else { return refuse(token, .closed, peer: peer.label) }
        guard engagedPeers < limits.peers else {
            return refuse(token, .limit("peers", limits.peers), peer: peer.label)
        }
        begin(
            Attempt(
                kind: .invite(conversation: generator.next(), context: context), tokens: [token],
                deadline: now + Moment.Span(timeout), routesLeft: preferredRoutes(of: peer)), with: peer)
        dialNextRoute(of: peer, now: now)
    }

    /// Asks whoever answers at `address` for a conversation.
    func call(
        _ address: TransportAddress, context: [UInt8], timeout: Duration, token: CallToken, now: Moment
    ) {
        guard let transport = transports.firstIndex(where: { $0.scheme == address.scheme }) else {
            let known = transports.map(\.scheme).joined(separator: ", ")
            let error = NighError(
                .connecting, .unavailable("this session has no transport \"\(address.scheme)\""),
                peer: address.description, advice: "it has: \(known)")
            return output(.finish(token, .failure(error)))
        }
        guard !isClosing else { return refuse(token, .closed, peer: address.description) }
        guard context.count <= limits.invitationContext else {
            return refuse(
                token, .limit("invitation context", limits.invitationContext), peer: address.description)
        }
        let call = AddressCall(
            token: token, address: address, transport: transport, context: context,
            deadline: now + Moment.Span(timeout))
        dial(address, transport: transport, for: .address(call), until: call.deadline, now: now)
    }

    /// Takes an invitation of this session's back.
    func cancelInvitation(of id: PeerID, now: Moment) {
        guard let peer = peers[id], let attempt = peer.attempt, attempt.kind != .resume else { return }
        fail(attemptOf: peer, with: .cancelled, now: now)
    }

    /// The task that made a call does not want it any more.
    func cancel(_ token: CallToken, now: Moment) {
        for (dial, dialled) in dials {
            guard case .address(let call) = dialled.purpose, call.token == token else { continue }
            dials[dial] = nil
            if let link = links.values.first(where: { $0.dial == dial }) { close(link, .cancelled) }
            output(.cancelDial(dial, transport: dialled.transport))
            return output(
                .finish(token, .failure(NighError(.inviting, .cancelled, peer: call.address.description))))
        }
        guard let peer = peers.values.first(where: { $0.attempt?.tokens.contains(token) ?? false }) else {
            return
        }
        guard peer.attempt?.tokens.count ?? 0 > 1 else {
            return fail(attemptOf: peer, with: .cancelled, now: now)
        }
        peer.attempt?.tokens.removeAll { $0 == token }
        refuse(token, .cancelled, peer: peer.label)
    }

    private func refuse(_ token: CallToken?, _ cause: NighError.Cause, peer: String) {
        guard let token else { return }
        output(.finish(token, .failure(NighError(.inviting, cause, peer: peer))))
    }

    /// The program says yes.
    func accept(invitation number: UInt64, token: CallToken?, now: Moment) {
        guard let peer = peers.values.first(where: { $0.invitation?.number == number }),
            let invitation = peer.invitation
        else { return refuse(token, .cancelled, peer: "the inviting peer") }
        guard engagedPeers < limits.peers else {
            decline(peer, invitation, code: .full, words: "", retryAfter: 0)
            return refuse(token, .limit("peers", limits.peers), peer: peer.label)
        }
        peer.invitation = nil
        move(peer, to: .connecting)
        let agreed = agree(to: invitation.request, on: invitation.link, with: peer, now: now)
        finish(token.map { [$0] } ?? [], with: peer, agreed: agreed)
    }

    /// The program says no.
    func decline(invitation number: UInt64, words: String, retryAfter: Duration) {
        guard let peer = peers.values.first(where: { $0.invitation?.number == number }),
            let invitation = peer.invitation
        else { return }
        let seconds = UInt32(clamping: retryAfter.components.seconds)
        decline(peer, invitation, code: .declined, words: words, retryAfter: seconds)
    }

    private func decline(
        _ peer: PeerRecord, _ invitation: PendingInvitation, code: ConversationRefusal.Code, words: String,
        retryAfter: UInt32
    ) {
        peer.invitation = nil
        refuse(invitation.request, on: invitation.link, code, words: words, retryAfter: retryAfter)
        settle(peer)
    }

    // MARK: Asking

    private func begin(_ attempt: Attempt, with peer: PeerRecord) {
        peer.attempt = attempt
        move(peer, to: .connecting)
        watch(peer)
    }

    func dial(
        _ address: TransportAddress, transport: Int, for purpose: DialPurpose, until deadline: Moment,
        now: Moment
    ) {
        let dial = DialID(number: nextNumber())
        dials[dial] = Dial(transport: transport, purpose: purpose)
        statistics.dials += 1
        if case .peer(let id) = purpose { peers[id]?.attempt?.dial = dial }
        let left = (deadline - now).duration
        output(
            .dial(
                dial, transport: transport, address, timeout: min(timings.dial, max(left, .milliseconds(1)))))
    }

    /// Tries the next route of an attempt, or ends it when none is left.
    func dialNextRoute(of peer: PeerRecord, now: Moment) {
        guard let attempt = peer.attempt else { return }
        guard let route = attempt.routesLeft.first else {
            let failures = attempt.failures
            return fail(attemptOf: peer, with: failures.count == 1 ? failures[0].cause : .allFailed, now: now)
        }
        peer.attempt?.routesLeft.removeFirst()
        dial(
            route.address, transport: route.transport, for: .peer(peer.id), until: attempt.deadline, now: now)
    }

    /// A transport could not open a pipe.
    func dialFailed(_ dial: DialID, error: NighError, now: Moment) {
        guard let failed = dials.removeValue(forKey: dial) else { return }
        statistics.dialsFailed[error.cause.label, default: 0] += 1
        routeFailed(failed.purpose, dial: dial, error: error, now: now)
    }

    /// One route of whatever was asked led nowhere.
    func routeFailed(_ purpose: DialPurpose, dial: DialID, error: NighError, now: Moment) {
        switch purpose {
        case .address(let call):
            output(.finish(call.token, .failure(error.about(call.address.description))))
        case .peer(let id):
            guard let peer = peers[id], peer.attempt?.dial == dial else { return }
            peer.attempt?.dial = nil
            peer.attempt?.link = nil
            peer.attempt?.requestSent = false
            peer.attempt?.failures.append(error.about(peer.label))
            dialNextRoute(of: peer, now: now)
        }
    }

    /// A dialled link is open and its peer is the right one: ask.
    func sendRequest(on link: Link, to peer: PeerRecord, now: Moment) {
        guard let attempt = peer.attempt, attempt.deadline > now else { return close(link, .cancelled) }
        link.purpose = .asking
        peer.attempt?.link = link
        peer.attempt?.requestSent = true
        requestsMade += 1
        var request = ConversationRequest(conversation: 0, attempt: requestsMade, standing: Standing())
        switch attempt.kind {
        case .invite(let conversation, let context):
            request.conversation = conversation
            request.context = context
            request.timeoutMilliseconds = UInt32(
                clamping: max(1, (attempt.deadline - now).nanoseconds / 1_000_000))
            // What is unread of earlier conversations counts here as it will when there is a conversation.
            let granted = UInt64(max(0, limits.receiveWindow - peer.unreadLeft))
            peer.attempt?.granted = granted
            for lane in 0..<2 { request.standing.granted[lane] = granted }
        case .resume:
            guard let conversation = peer.conversation else { return close(link, .cancelled) }
            request.conversation = conversation.id
            request.standing = conversation.standingForNewLink()
        }
        link.machine.send(request, isResume: attempt.kind == .resume)
        markDirty(link)
    }

    /// Whoever was called by address has said who it is.
    func addressAnswered(_ call: AddressCall, link: Link, hello: Hello, now: Moment) {
        guard let peer = record(of: hello.peer, name: hello.name) else {
            close(link, .tooManyLinks)
            return refuse(
                call.token, .limit("known peers", limits.knownPeers), peer: call.address.description)
        }
        peer.name = hello.name
        if !peer.routes.contains(where: { $0.address == call.address }),
            peer.routes.count < limits.routesPerPeer
        {
            peer.routes.append(RouteRecord(transport: call.transport, address: call.address, isManual: true))
        }
        if peer.state == .unavailable { settle(peer) }
        link.belongs(to: peer)
        guard peer.state == .available, peer.invitation == nil, engagedPeers < limits.peers else {
            close(link, .superseded)
            let left = (call.deadline - now).duration
            invite(peer.id, context: call.context, timeout: left, token: call.token, now: now)
            guard peer.attempt == nil, peer.conversation == nil else { return }
            dropManualRoutes(of: peer)
            return settle(peer)
        }
        begin(
            Attempt(
                kind: .invite(conversation: generator.next(), context: call.context), tokens: [call.token],
                deadline: call.deadline,
                routesLeft: preferredRoutes(of: peer).filter { $0.address != call.address },
                dial: link.dial, link: link), with: peer)
        sendRequest(on: link, to: peer, now: now)
    }

    /// The peer said yes to this session's request.
    func requestAccepted(_ acceptance: ConversationAcceptance, on link: Link, now: Moment) {
        guard let peer = link.peer, let attempt = peer.attempt, attempt.link === link, link.purpose == .asking
        else {
            return violated(link, "an answer nobody asked for", now: now)
        }
        let expected: UInt64
        switch attempt.kind {
        case .invite(let conversation, _): expected = conversation
        case .resume: expected = peer.conversation?.id ?? acceptance.conversation
        }
        guard acceptance.conversation == expected else {
            return violated(link, "an answer for another conversation", now: now)
        }
        noteRequestsSeen(acceptance.attempt, from: peer, on: link)
        peer.attempt = nil
        if attempt.kind != .resume {
            conversation(expected, with: peer, link: link).wasGranted(attempt.granted)
        }
        let carries = carry(
            acceptance.conversation, on: link, with: peer, peerStanding: acceptance.standing, now: now)
        finish(attempt.tokens, with: peer, agreed: carries)
    }

    /// The peer said no.
    func requestRefused(_ refusal: ConversationRefusal, on link: Link, now: Moment) {
        guard let peer = link.peer, let attempt = peer.attempt, attempt.link === link, link.purpose == .asking
        else {
            return violated(link, "an answer nobody asked for", now: now)
        }
        let cause: NighError.Cause =
            switch refusal.code {
            case .declined: .declined(refusal.words, retryAfter: .seconds(Int64(refusal.retryAfterSeconds)))
            case .full: .full
            case .busy: .busy
            case .unknownConversation: .unknownConversation
            case .outOfDate: .superseded
            }
        switch (attempt.kind, refusal.code) {
        case (.resume, .unknownConversation):
            close(link, .cancelled)
            peer.attempt = nil
            endConversation(of: peer, cause: .unknownConversation)
        case (_, .outOfDate):
            let dial = attempt.dial
            close(link, .cancelled)
            if let dial {
                routeFailed(.peer(peer.id), dial: dial, error: NighError(.inviting, cause), now: now)
            }
        default:
            let seconds = refusal.retryAfterSeconds
            fail(
                attemptOf: peer, with: cause, now: now,
                advice: seconds > 0 ? "ask again in \(seconds) s at the earliest" : nil)
        }
    }

    /// Gives an attempt up: an invitation fails, a resumption pauses.
    func fail(attemptOf peer: PeerRecord, with cause: NighError.Cause, now: Moment, advice: String? = nil) {
        guard let attempt = peer.attempt else { return }
        abandonAttempt(of: peer)
        switch attempt.kind {
        case .invite:
            var error = NighError(.inviting, cause, peer: peer.label, advice: advice)
            if attempt.failures.count == 1, attempt.failures[0].cause == cause {
                error = attempt.failures[0]
            } else {
                error.attempts = attempt.failures
            }
            move(peer, to: .available, cause: error)
            for token in attempt.tokens { output(.finish(token, .failure(error))) }
            dropManualRoutes(of: peer)
            settle(peer)
        case .resume: pauseRecovery(of: peer, failures: attempt.failures, now: now)
        }
    }

    /// Takes back whatever an attempt has under way, and forgets it.
    func abandonAttempt(of peer: PeerRecord, code: LinkClose.Code = .cancelled) {
        guard let attempt = peer.attempt else { return }
        peer.attempt = nil
        if let link = attempt.link { close(link, code) }
        if let dial = attempt.dial, let unanswered = dials.removeValue(forKey: dial) {
            if let link = links.values.first(where: { $0.dial == dial }) { close(link, code) }
            output(.cancelDial(dial, transport: unanswered.transport))
        }
    }

    func dropManualRoutes(of peer: PeerRecord) {
        peer.routes.removeAll { $0.isManual }
    }

    // MARK: Being asked

    /// The other side of an accepted link asks for a conversation, or for one to go on.
    func requestReceived(_ request: ConversationRequest, isResume: Bool, on link: Link, now: Moment) {
        guard let peer = link.peer, link.machine.side == .accepting, link.purpose == .unsettled else {
            return violated(link, "a request out of turn", now: now)
        }
        guard noteRequestsSeen(request.attempt, from: peer, on: link) else {
            return refuse(request, on: link, .outOfDate)
        }
        if let attempt = peer.attempt {
            if case .invite(request.conversation, _) = attempt.kind {
                // They have accepted this session's invitation already, but the word of it was lost on the way.
                return settleAttempt(of: peer, by: request, on: link, now: now)
            }
            let sameKind = isResume == (attempt.kind == .resume)
            if sameKind, attempt.requestSent, hello.peer > peer.id { return close(link, .superseded) }
            if !isResume, attempt.kind != .resume {
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
            endConversation(of: peer, cause: .peerLeft)
        } else if isResume {
            return refuse(request, on: link, .unknownConversation)
        }
        consider(request, on: link, from: peer, now: now)
    }

    /// Both sides want each other: this session's own request is settled by accepting the peer's.
    private func settleAttempt(
        of peer: PeerRecord, by request: ConversationRequest, on link: Link, now: Moment
    ) {
        let tokens = peer.attempt?.tokens ?? []
        // Not "superseded": the conversation proposed there will never be.
        abandonAttempt(of: peer)
        finish(tokens, with: peer, agreed: agree(to: request, on: link, with: peer, now: now))
    }

    /// Puts an invitation before the program, or refuses it by rule.
    private func consider(_ request: ConversationRequest, on link: Link, from peer: PeerRecord, now: Moment) {
        guard !isClosing else { return close(link, .sessionClosed) }
        guard engagedPeers < limits.peers else { return refuse(request, on: link, .full) }
        if peer.invitation != nil { endInvitation(of: peer, cause: .superseded, code: .superseded) }
        let waiting = peers.values.reduce(0) { $0 + ($1.invitation == nil ? 0 : 1) }
        guard waiting < limits.pendingInvitations else { return refuse(request, on: link, .busy) }
        link.purpose = .invited
        let timeout = Moment.Span.milliseconds(Int64(request.timeoutMilliseconds))
        let invitation = PendingInvitation(
            number: nextNumber(), link: link, request: request, deadline: now + timeout)
        peer.invitation = invitation
        if peer.state == .unavailable { settle(peer) }
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
        peer.invitation = nil
        close(invitation.link, code)
        let error = NighError(.inviting, cause, peer: peer.label)
        output(.tell(.invitationEnded(describe(invitation, from: peer), cause: error)))
        settle(peer)
    }

    private func refuse(
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
        if let old = peer.link, old !== link { close(old, .superseded) }
        link.machine.send(
            ConversationAcceptance(
                conversation: request.conversation, attempt: requestsMade,
                standing: conversation.standingForNewLink()))
        return carry(request.conversation, on: link, with: peer, peerStanding: request.standing, now: now)
    }

    private func finish(_ tokens: [CallToken], with peer: PeerRecord, agreed: Bool) {
        let error = NighError(.inviting, .protocolViolation("an impossible beginning"), peer: peer.label)
        for token in tokens { output(.finish(token, agreed ? .success(peer.id) : .failure(error))) }
    }

    /// Notes a request's number; false when a later one was seen already, so that this one is out of date.
    @discardableResult
    private func noteRequestsSeen(_ number: UInt64, from peer: PeerRecord, on link: Link) -> Bool {
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
