// How this session requests a conversation, or that one resumes: on one route after another, until one leads to an
// answer. SessionMachine+Answering has the other side's part.
extension SessionMachine {
    // MARK: The program's calls

    /// Invites a known peer. The outcome is reported under `token`.
    ///
    /// - Parameter introduction: an introducer's token for the peer; empty without one.
    mutating func invite(
        _ id: PeerID, context: [UInt8], introduction: [UInt8] = [], timeout: Duration, token: CallToken,
        now: Moment
    ) {
        guard let peer = peers[id] else { return refuse(token, .unknownPeer, peer: id.short) }
        guard context.count <= limits.invitationContext else {
            return refuse(token, .limit("invitation context", limits.invitationContext), peer: peer.label)
        }
        if let lie = falseAnnouncement(of: peer) { return refuse(token, lie, peer: peer.label) }
        guard mayConverse(with: id) else { return refuse(token, .notPaired, peer: peer.label) }
        let deadline = now + Moment.Span(timeout)
        switch peer.phase {
        case .connected(let conversation, _), .reconnecting(let conversation, _):
            if conversation.departure != nil { return refuse(token, .left, peer: peer.label) }
            return output(.finish(token, .success(id)))
        case .inviting(let invitation):
            join(invitation, token: token, deadline: deadline)
            return watch(peer)
        case .available(let invitation?):
            return accept(invitation, of: peer, inviting: context, token: token, now: now)
        case .available(nil): break
        case .unavailable, .settling, .ended: return refuse(token, .noRoute, peer: peer.label)
        }
        guard !isClosing else { return refuse(token, .closed, peer: peer.label) }
        guard engagedPeers < limits.peers else {
            return refuse(token, .limit("peers", limits.peers), peer: peer.label)
        }
        let race = race(for: .peer(id), along: preferredRoutes(of: peer), until: deadline)
        let invitation = startInviting(
            peer, context: context, token: token, attempt: Attempt(race: race, deadline: deadline))
        invitation.introduction = introduction
        run(race, now: now)
    }

    /// Invites the peer that answers at `address`.
    mutating func call(
        _ address: TransportAddress, context: [UInt8], timeout: Duration, token: CallToken, now: Moment
    ) {
        guard let transport = transports.firstIndex(where: { $0.scheme == address.scheme }) else {
            let known = transports.filter(\.isForPeople).map(\.scheme).joined(separator: ", ")
            let error = NighError(
                .connecting, .unavailable("this session has no transport \"\(address.scheme)\""),
                peer: address.description, advice: "its transports: \(known)")
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

    /// Withdraws an invitation of this session.
    mutating func cancelInvitation(of id: PeerID, now: Moment) {
        guard let peer = peers[id], case .inviting = peer.phase else { return }
        fail(attemptOf: peer, with: .cancelled, now: now)
    }

    /// Cancels the call of a task that was cancelled.
    mutating func cancel(_ token: CallToken, now: Moment) {
        for race in races.values {
            guard case .address(let call) = race.purpose, call.token == token else { continue }
            stop(race)
            return output(
                .finish(token, .failure(NighError(.inviting, .cancelled, peer: call.address.description))))
        }
        for peer in peers.values {
            guard case .inviting(let invitation) = peer.phase,
                invitation.calls.contains(where: { $0.token == token })
            else { continue }
            guard invitation.calls.count > 1 else {
                return fail(attemptOf: peer, with: .cancelled, now: now)
            }
            for call in invitation.removeCalls(where: { $0.token == token }) {
                refuse(call.token, .cancelled, peer: peer.label)
            }
            return watch(peer)
        }
    }

    /// Lets one more call wait for the outcome of an invitation under way.
    private func join(_ invitation: OutgoingInvitation, token: CallToken, deadline: Moment) {
        invitation.add(
            OutgoingInvitation.Call(token: token, deadline: deadline),
            lateness: Moment.Span(timings.nextRoute))
    }

    mutating func refuse(_ token: CallToken?, _ cause: NighError.Cause, peer: String) {
        guard let token else { return }
        output(.finish(token, .failure(NighError(.inviting, cause, peer: peer))))
    }

    // MARK: Requesting

    @discardableResult
    private mutating func startInviting(
        _ peer: PeerRecord, context: [UInt8], token: CallToken, attempt: Attempt
    ) -> OutgoingInvitation {
        let invitation = OutgoingInvitation(
            conversation: generator.next(), context: context, to: peer.identity.current, token: token,
            attempt: attempt)
        changePhase(of: peer, to: .inviting(invitation))
        watch(peer)
        return invitation
    }

    /// Forgets the link on which the request failed, and continues with the other routes.
    mutating func requestFailed(_ peer: PeerRecord, with error: NighError, now: Moment) {
        guard let attempt = peer.attempt else { return }
        if case .inviting = peer.phase, attempt.routeDeadline < .never {
            // The invitation lasts longer than the request has said, so every route may be asked again.
            attempt.race.routes = preferredRoutes(of: peer)
        }
        attempt.forgetLink()
        release(linkOf: peer)
        continueRace(attempt.race, after: error, now: now)
    }

    /// Gives up the link whose answer takes too long, because there are other routes, or because the other side waits
    /// for its program no longer.
    mutating func giveUpRequest(_ peer: PeerRecord, now: Moment) {
        guard let attempt = peer.attempt else { return }
        guard let link = attempt.link else { return attempt.routeDeadline = .never }
        // Not "cancelled": the other side may have accepted meanwhile, and the conversation is not over.
        close(link, .tooSlow)
        let error = NighError(.connecting, .timedOut, transport: transports[link.transport].scheme)
        requestFailed(peer, with: error, now: now)
    }

    /// Sends the request on a dialled link that is open and whose peer is the right one. Called while input from that
    /// link is handled, so the request leaves together with the answers to that input.
    mutating func sendRequest(on link: Link, to peer: PeerRecord, now: Moment) {
        guard let attempt = peer.attempt else { return close(link, .cancelled) }
        guard attempt.deadline > now else {
            attempt.forgetLink()
            return close(link, .cancelled)
        }
        link.purpose = .requesting
        attempt.link = link
        attempt.requestSent = true
        // After a link has broken, its route may swallow bytes for longer than the conversation can wait.
        let isHurried = peer.recovery != nil && !attempt.race.routes.isEmpty
        attempt.routeDeadline = isHurried ? now + Moment.Span(timings.nextRoute) : .never
        watch(peer)
        requestsMade += 1
        var request = ConversationRequest(conversation: 0, attempt: requestsMade, standing: Standing())
        switch peer.phase {
        case .inviting(let invitation):
            invitation.wasSent = true
            request.conversation = invitation.conversation
            request.context = invitation.context
            if !invitation.introduction.isEmpty {
                link.machine.send(introduction: invitation.introduction)
            }
            // Rounded up, so that the other side does not give up first.
            request.timeoutMilliseconds = UInt32(
                clamping: max(1, ((attempt.deadline - now).nanoseconds + 999_999) / 1_000_000))
            // Unread bytes of earlier conversations count here in the same way as later in the conversation.
            let granted = UInt64(max(0, limits.receiveWindow - peer.unreadLeft))
            attempt.granted = granted
            for lane in 0..<2 { request.standing.granted[lane] = granted }
        case .reconnecting(let conversation, _):
            request.conversation = conversation.id
            request.standing = conversation.standingForNewLink()
        case .connected(let conversation, let carryingLink):
            guard canMoveConversation(of: peer) else {
                return fail(attemptOf: peer, with: .cancelled, now: now)
            }
            request.conversation = conversation.id
            request.standing = conversation.standingForReplacementLink()
            attempt.granted = request.standing.granted[0]
            attempt.deadline = now + Moment.Span(timings.nextRoute)
            hold(carryingLink.link)
            watch(peer)
        case .unavailable, .available, .settling, .ended: return close(link, .cancelled)
        }
        link.machine.send(request, isResume: peer.conversation != nil)
    }

    /// Handles the hello of the peer that was called by address.
    mutating func addressAnswered(_ call: AddressCall, link: Link, hello: Hello, now: Moment) {
        guard let peer = record(of: hello, on: link) else {
            let cause = NighError.Cause.limit("known peers", limits.knownPeers)
            close(link, .tooManyLinks, because: cause)
            return refuse(call.token, cause, peer: call.address.description)
        }
        let isNewRoute =
            !peer.routes.contains { $0.address == call.address } && hasRoomForRoute(to: peer)
        if isNewRoute {
            peer.routes.append(
                RouteRecord(transport: call.transport, address: call.address, source: .program))
            considerBetterRoutes(of: peer, now: now)
        }
        if peer.state == .unavailable { updateState(of: peer) }
        link.assign(to: peer)
        let others = preferredRoutes(of: peer).filter { $0.address != call.address }
        if case .inviting(let invitation) = peer.phase, invitation.attempt.isSearching {
            // This link is here already. Those of the invitation's own dials may never be.
            join(invitation, token: call.token, deadline: call.deadline)
            stop(invitation.attempt.race, code: .superseded)
            invitation.attempt.race.routes = others
            if isNewRoute { reportChange(of: peer) }
            return sendRequest(on: link, to: peer, now: now)
        }
        guard peer.state == .available, peer.invitation == nil, engagedPeers < limits.peers else {
            close(link, .superseded)
            let left = (call.deadline - now).duration
            invite(peer.id, context: call.context, timeout: left, token: call.token, now: now)
            guard peer.attempt == nil, peer.conversation == nil else {
                if isNewRoute { reportChange(of: peer) }
                return
            }
            dropManualRoutes(of: peer)
            return updateState(of: peer)
        }
        let race = race(for: .peer(peer.id), along: others, until: call.deadline)
        let attempt = Attempt(race: race, deadline: call.deadline, link: link)
        startInviting(peer, context: call.context, token: call.token, attempt: attempt)
        sendRequest(on: link, to: peer, now: now)
    }

    /// Handles the peer's acceptance of this session's request.
    mutating func requestAccepted(_ acceptance: ConversationAcceptance, on link: Link, now: Moment) {
        guard let peer = link.peer, let attempt = peer.attempt, attempt.link === link,
            link.purpose == .requesting
        else {
            return violated(link, "an answer without a request", now: now)
        }
        var expected = peer.conversation?.id
        var tokens: [CallToken] = []
        var crossedContext: [UInt8]?
        if case .inviting(let invitation) = peer.phase {
            expected = invitation.conversation
            tokens = invitation.calls.map(\.token)
            crossedContext = invitation.crossedContext
        }
        guard acceptance.conversation == expected else {
            return violated(link, "an answer for another conversation", now: now)
        }
        noteRequestsSeen(acceptance.attempt, from: peer, on: link)
        _ = peer.takeAttempt()
        let conversation = conversation(acceptance.conversation, with: peer, link: link)
        if let granted = attempt.granted { conversation.noteGrant(granted) }
        let carries = carry(
            conversation, on: link, with: peer, peerStanding: acceptance.standing, now: now)
        if carries, let crossedContext {
            report(.invitationsCrossed(snapshot(of: peer), context: crossedContext))
        }
        finish(tokens, with: peer, agreed: carries)
    }

    /// Handles the peer's refusal of this session's request.
    mutating func requestRefused(_ refusal: ConversationRefusal, on link: Link, now: Moment) {
        guard let peer = link.peer, let attempt = peer.attempt, attempt.link === link,
            link.purpose == .requesting
        else {
            return violated(link, "an answer without a request", now: now)
        }
        let cause: NighError.Cause =
            switch refusal.code {
            case .declined: .declined(refusal.reason, retryAfter: .seconds(Int64(refusal.retryAfterSeconds)))
            case .full: .full
            case .busy: .busy
            case .unknownConversation: .unknownConversation
            case .outOfDate: .superseded
            }
        switch refusal.code {
        case .unknownConversation where peer.conversation != nil:
            close(link, .cancelled)
            _ = peer.takeAttempt()
            unknownToPeer(peer, now: now)
        case .outOfDate where refusal.retryAfterSeconds == 0:
            close(link, .cancelled)
            requestFailed(peer, with: NighError(.inviting, cause), now: now)
        default:
            let seconds = Int64(refusal.retryAfterSeconds)
            fail(attemptOf: peer, with: cause, now: now, retryAfter: seconds > 0 ? .seconds(seconds) : nil)
        }
    }

    /// Gives an attempt up: an invitation fails; a resume or a move pauses, at least for the time that the peer named.
    mutating func fail(
        attemptOf peer: PeerRecord, with cause: NighError.Cause, now: Moment, retryAfter: Duration? = nil
    ) {
        guard let attempt = peer.attempt else { return }
        let phase = peer.phase
        // The other side may have accepted meanwhile. If the conversation is to continue, it must not end there.
        abandonAttempt(of: peer, code: peer.conversation != nil ? .tooSlow : .cancelled)
        switch phase {
        case .inviting(let invitation):
            let advice = retryAfter.map { "wait at least \($0.components.seconds) s before you invite again" }
            var error = NighError(.inviting, cause, peer: peer.label, advice: advice)
            error.retryAfter = retryAfter
            let failures = attempt.race.failures
            if failures.count == 1, failures[0].cause == cause {
                error = failures[0]
            } else {
                error.attempts = failures
            }
            dropManualRoutes(of: peer)
            changePhase(of: peer, to: .available(nil), cause: error)
            for call in invitation.calls { output(.finish(call.token, .failure(error))) }
            updateState(of: peer)
            dialKnownAddresses(of: peer.id, now: now)
        case .reconnecting(_, let recovery):
            pause(recovery, of: peer, failures: attempt.race.failures, now: now, atLeast: retryAfter ?? .zero)
        case .connected: moveFailed(of: peer, now: now, retryAfter: retryAfter ?? .zero)
        case .unavailable, .available, .settling, .ended: break
        }
    }

    /// Cancels everything that an attempt has under way, and forgets the attempt.
    mutating func abandonAttempt(of peer: PeerRecord, code: LinkClose.Code = .cancelled) {
        guard let attempt = peer.takeAttempt() else { return }
        release(linkOf: peer)
        if let link = attempt.link { close(link, code) }
        stop(attempt.race, code: code)
    }

    func dropManualRoutes(of peer: PeerRecord) {
        peer.routes.removeAll { $0.source == .program }
    }
}
