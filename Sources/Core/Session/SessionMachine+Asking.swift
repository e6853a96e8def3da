// How this session asks for a conversation, or for one to go on: one route after another, until one answers. How the
// other side answers is in SessionMachine+Answering.
extension SessionMachine {
    // MARK: The program's calls

    /// Asks a known peer for a conversation. The outcome is told under `token`.
    func invite(_ id: PeerID, context: [UInt8], timeout: Duration, token: CallToken, now: Moment) {
        guard let peer = peers[id] else { return refuse(token, .unknownPeer, peer: id.short) }
        guard context.count <= limits.invitationContext else {
            return refuse(token, .limit("invitation context", limits.invitationContext), peer: peer.label)
        }
        guard mayTalk(to: id) else { return refuse(token, .notPaired, peer: peer.label) }
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
        let deadline = now + Moment.Span(timeout)
        let race = race(for: .peer(id), along: preferredRoutes(of: peer), until: deadline)
        begin(
            Attempt(
                kind: .invite(conversation: generator.next(), context: context), tokens: [token],
                deadline: deadline, race: race), with: peer)
        run(race, now: now)
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
        let route = RouteRecord(transport: transport, address: address)
        run(race(for: .address(call), along: [route], until: call.deadline), now: now)
    }

    /// Takes an invitation of this session's back.
    func cancelInvitation(of id: PeerID, now: Moment) {
        guard let peer = peers[id], let attempt = peer.attempt, !attempt.kind.isResume else { return }
        fail(attemptOf: peer, with: .cancelled, now: now)
    }

    /// The task that made a call does not want it any more.
    func cancel(_ token: CallToken, now: Moment) {
        for race in races.values {
            guard case .address(let call) = race.purpose, call.token == token else { continue }
            stop(race)
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

    func refuse(_ token: CallToken?, _ cause: NighError.Cause, peer: String) {
        guard let token else { return }
        output(.finish(token, .failure(NighError(.inviting, cause, peer: peer))))
    }

    // MARK: Asking

    private func begin(_ attempt: Attempt, with peer: PeerRecord) {
        peer.attempt = attempt
        move(peer, to: .connecting)
        watch(peer)
    }

    /// The link that was asked on leads nowhere: forgets it, and goes on with the other routes.
    func askingFailed(_ peer: PeerRecord, with error: NighError, now: Moment) {
        guard let attempt = peer.attempt else { return }
        forgetAskingLink(of: peer)
        release(linkOf: peer)
        goOn(with: attempt.race, after: error, now: now)
    }

    func forgetAskingLink(of peer: PeerRecord) {
        peer.attempt?.link = nil
        peer.attempt?.requestSent = false
        peer.attempt?.routeDeadline = .never
    }

    /// The answer takes too long, and there are other routes.
    func giveUpAsking(_ peer: PeerRecord, now: Moment) {
        peer.attempt?.routeDeadline = .never
        guard let attempt = peer.attempt, let link = attempt.link else { return }
        // Not "cancelled": the other side may have agreed meanwhile, and the conversation is not over.
        close(link, .tooSlow)
        let error = NighError(.connecting, .timedOut, transport: transports[link.transport].scheme)
        askingFailed(peer, with: error, now: now)
    }

    /// A dialled link is open and its peer is the right one: ask.
    func sendRequest(on link: Link, to peer: PeerRecord, now: Moment) {
        guard let attempt = peer.attempt, attempt.deadline > now else { return close(link, .cancelled) }
        link.purpose = .asking
        peer.attempt?.link = link
        peer.attempt?.requestSent = true
        // Where a link broke, its route may swallow what is sent for longer than the conversation can wait.
        let isHurried = attempt.kind == .resume && !attempt.race.routes.isEmpty
        peer.attempt?.routeDeadline = isHurried ? now + Moment.Span(timings.nextRoute) : .never
        watch(peer)
        requestsMade += 1
        var request = ConversationRequest(conversation: 0, attempt: requestsMade, standing: Standing())
        switch attempt.kind {
        case .invite(let conversation, let context):
            request.conversation = conversation
            request.context = context
            // Rounded up: the other side should not give up first.
            request.timeoutMilliseconds = UInt32(
                clamping: max(1, ((attempt.deadline - now).nanoseconds + 999_999) / 1_000_000))
            // What is unread of earlier conversations counts here as it will when there is a conversation.
            let granted = UInt64(max(0, limits.receiveWindow - peer.unreadLeft))
            peer.attempt?.granted = granted
            for lane in 0..<2 { request.standing.granted[lane] = granted }
        case .resume:
            guard let conversation = peer.conversation else { return close(link, .cancelled) }
            request.conversation = conversation.id
            request.standing = conversation.standingForNewLink()
        case .move:
            guard let conversation = peer.conversation, let standing = requestToMove(peer, now: now) else {
                return fail(attemptOf: peer, with: .cancelled, now: now)
            }
            request.conversation = conversation.id
            request.standing = standing
        }
        link.machine.send(request, isResume: attempt.kind.isResume)
        markDirty(link)
    }

    /// Whoever was called by address has said who it is.
    func addressAnswered(_ call: AddressCall, link: Link, hello: Hello, now: Moment) {
        guard let peer = record(of: hello.peer, name: hello.name) else {
            let cause = NighError.Cause.limit("known peers", limits.knownPeers)
            close(link, .tooManyLinks, because: cause)
            return refuse(call.token, cause, peer: call.address.description)
        }
        peer.name = hello.name
        if !peer.routes.contains(where: { $0.address == call.address }),
            peer.routes.count < limits.routesPerPeer
        {
            peer.routes.append(RouteRecord(transport: call.transport, address: call.address, isManual: true))
            considerBetterRoutes(of: peer, now: now)
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
        let others = preferredRoutes(of: peer).filter { $0.address != call.address }
        let race = race(for: .peer(peer.id), along: others, until: call.deadline)
        begin(
            Attempt(
                kind: .invite(conversation: generator.next(), context: call.context), tokens: [call.token],
                deadline: call.deadline, race: race, link: link), with: peer)
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
        case .resume, .move: expected = peer.conversation?.id ?? acceptance.conversation
        }
        guard acceptance.conversation == expected else {
            return violated(link, "an answer for another conversation", now: now)
        }
        noteRequestsSeen(acceptance.attempt, from: peer, on: link)
        peer.attempt = nil
        if let granted = attempt.granted {
            conversation(expected, with: peer, link: link).wasGranted(granted)
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
        case (.resume, .unknownConversation), (.move, .unknownConversation):
            close(link, .cancelled)
            peer.attempt = nil
            endConversation(of: peer, cause: .unknownConversation, now: now)
        case (_, .outOfDate) where refusal.retryAfterSeconds == 0:
            close(link, .cancelled)
            askingFailed(peer, with: NighError(.inviting, cause), now: now)
        default:
            let seconds = Int64(refusal.retryAfterSeconds)
            fail(attemptOf: peer, with: cause, now: now, retryAfter: seconds > 0 ? .seconds(seconds) : nil)
        }
    }

    /// Gives an attempt up: an invitation fails, a resumption pauses, for as long as the peer wants not to be asked again.
    func fail(
        attemptOf peer: PeerRecord, with cause: NighError.Cause, now: Moment, retryAfter: Duration? = nil
    ) {
        guard let attempt = peer.attempt else { return }
        // Where the other side may have agreed meanwhile, a conversation that is to go on must not be over for it.
        abandonAttempt(of: peer, code: attempt.kind.isResume ? .tooSlow : .cancelled)
        switch attempt.kind {
        case .invite:
            let advice = retryAfter.map { "ask again in \($0.components.seconds) s at the earliest" }
            var error = NighError(.inviting, cause, peer: peer.label, advice: advice)
            error.retryAfter = retryAfter
            let failures = attempt.race.failures
            if failures.count == 1, failures[0].cause == cause {
                error = failures[0]
            } else {
                error.attempts = failures
            }
            move(peer, to: .available, cause: error)
            for token in attempt.tokens { output(.finish(token, .failure(error))) }
            dropManualRoutes(of: peer)
            settle(peer)
            visitAddresses(of: peer.id, now: now)
        case .resume:
            pauseRecovery(of: peer, failures: attempt.race.failures, now: now, atLeast: retryAfter ?? .zero)
        case .move: moveFailed(of: peer, now: now, retryAfter: retryAfter ?? .zero)
        }
    }

    /// Takes back whatever an attempt has under way, and forgets it.
    func abandonAttempt(of peer: PeerRecord, code: LinkClose.Code = .cancelled) {
        guard let attempt = peer.attempt else { return }
        peer.attempt = nil
        release(linkOf: peer)
        if let link = attempt.link { close(link, code) }
        stop(attempt.race, code: code)
    }

    func dropManualRoutes(of peer: PeerRecord) {
        peer.routes.removeAll { $0.isManual }
    }
}
