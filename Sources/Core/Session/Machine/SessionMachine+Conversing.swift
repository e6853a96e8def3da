// A conversation from its first link to its last: carried, interrupted, resumed, left.

extension SessionMachine {
    /// Returns the conversation `id` with `peer`, and makes it if it is new. It becomes the peer's when a link carries
    /// it.
    func conversation(_ id: UInt64, with peer: PeerRecord, link: Link) -> Conversation {
        if let conversation = peer.conversation, conversation.id == id { return conversation }
        guard let hello = link.machine.peerHello else {
            preconditionFailure("a conversation before the hello")
        }
        let port = PeerPort(
            peer: peer.id, limits: limits, peerHello: hello, chunks: stagingChunks,
            largeChunks: largeChunks, notify: listPort)
        return Conversation(
            id: id, hello: link.machine.ownHello, peer: hello, identity: peer.identity.current, port: port,
            unread: peer.unreadLeft, limits: limits, timings: timings)
    }

    /// Makes `link` carry the conversation, to which both sides have agreed. Returns false if the peer claims something
    /// impossible about the conversation; then the link and the conversation are over.
    mutating func carry(
        _ conversation: Conversation, on link: Link, with peer: PeerRecord, peerStanding: Standing,
        now: Moment
    ) -> Bool {
        do throws(WireError) {
            try conversation.startLink(peerStanding: peerStanding, pool: &outbox.pool)
        } catch {
            close(link, .protocolViolation, error.message, because: error.asViolation)
            if peer.conversation === conversation {
                endConversation(of: peer, cause: error.asViolation, now: now)
            } else {
                beginningFailed(with: peer, cause: error.asViolation, now: now)
            }
            return false
        }
        link.purpose = .carrying
        link.carriesSince = now
        link.conversation = conversation
        replaceLink(of: peer, by: link, now: now)
        conversation.link = link
        conversation.streams?.linkChanged(roundTrip: link.machine.shortestRoundTrip)
        measureRoundTrip(for: conversation, on: link, now: now)
        if !conversation.flushes.isEmpty { finishFlushes(of: conversation) }
        let phase = PeerPhase.connected(conversation, CarryingLink(link: link))
        switch peer.phase {
        case .settling:
            peer.unreadLeft = 0
            output(.openPort(conversation.port))
            peer.handle?.set(conversation.port)
            if security != .none { remember(peer) }
            changePhase(of: peer, to: phase)
        case .reconnecting:
            conversation.statistics.reconnects += 1
            changePhase(of: peer, to: phase)
        case .connected:
            // The conversation moved to a better route, or this side had not noticed yet that the old link was gone.
            conversation.statistics.reconnects += 1
            peer.phase = phase
            reportChange(of: peer)
        case .unavailable, .available, .inviting, .ended:
            preconditionFailure("a link for a peer that is \(peer.state)")
        }
        reportResponsive(peer)
        markDirty(link)
        watch(link)
        considerBetterRoutes(of: peer, now: now)
        // The program may have read messages while the two sides exchanged their hellos.
        if conversation.shouldGrantNow { acknowledge(conversation, on: link) }
        if conversation.departure != nil, conversation.isDrained { finishDeparture(of: peer, now: now) }
        return true
    }

    /// Ends the previous link after `link` has taken over from it. Messages of keys that wait go to the new link, pings
    /// that wait are sent once more, and a pairing that shows no digits yet starts again.
    mutating func replaceLink(of peer: PeerRecord, by link: Link, now: Moment) {
        guard let old = peer.link, old !== link else { return }
        link.isBetter = transports[link.transport].priority < transports[old.transport].priority
        for (number, waiting) in pings.sorted(by: { $0.key < $1.key }) where waiting.link === old {
            pings[number]?.link = link
            link.machine.ping(token: number, payload: waiting.payload, now: now)
        }
        for ping in old.takePacketPings() { send(ping, onPathOf: link, now: now) }
        movePairing(with: peer, from: old, to: link, now: now)
        link.newest = old.newest.takeAll()
        if let waiting = old.datagrams?.takeWaiting() { link.newest.add(waiting) }
        markDirty(link)
        old.conversation?.keepCounts(of: old)
        close(old, .superseded)
    }

    /// Handles impossible claims of the peer at the beginning of a conversation, after both sides have agreed to it.
    private mutating func beginningFailed(with peer: PeerRecord, cause: NighError.Cause, now: Moment) {
        conversationsEnded.add(cause.label)
        dropManualRoutes(of: peer)
        changePhase(of: peer, to: .available(nil), cause: NighError(.conversing, cause, peer: peer.label))
        cleanUp(peer, now: now)
    }

    /// Cleans up after a conversation with the peer is over, or has failed at its beginning.
    private mutating func cleanUp(_ peer: PeerRecord, now: Moment) {
        dropManualRoutes(of: peer)
        updateState(of: peer)
        dialKnownAddresses(of: peer.id, now: now)
    }

    /// Handles the end of the link that carried the conversation.
    mutating func carryingLinkEnded(
        of peer: PeerRecord, _ link: Link, _ end: LinkMachine.LinkEnd, now: Moment
    ) {
        guard let conversation = peer.conversation else { return }
        conversation.link = nil
        noteLoss(of: link, with: peer, now: now)
        // If the conversation was moving, it now looks at all routes.
        abandonAttempt(of: peer, code: .tooSlow)
        var end = end
        if end.code == .cancelled, conversation.continueAsOwnInvitation() {
            // The peer withdrew its invitation, probably because it has accepted this side's. Then it goes on with
            // that.
            end = LinkMachine.LinkEnd(cause: .linkLost, code: nil, isByPeer: false)
        }
        guard end.scope == .link else {
            // "Cancelled": the peer withdrew its invitation while this side's acceptance was on its way.
            let cause = end.code == .cancelled ? .peerLeft : end.cause
            return endConversation(of: peer, cause: cause, now: now)
        }
        if let departure = conversation.departure, conversation.isDrained || departure.deadline <= now {
            return finishDeparture(of: peer, now: now)
        }
        // The side that dialled the lost link dials again at once; the other side waits a little, so that they seldom
        // collide. After "superseded" the other side's new link is on its way. If link after link breaks as soon as it
        // carries the conversation, both sides wait, and longer each time. A better route that failed does not count:
        // the route before it is as good as it was.
        let isBrief = now - link.carriesSince < Moment.Span(timings.longestRetry)
        let betterRouteFailed = isBrief && link.isBetter
        conversation.briefLinks = isBrief && !betterRouteFailed ? conversation.briefLinks + 1 : 0
        let redials = link.dial != nil && end.code != .superseded && conversation.briefLinks <= 1
        let pause = min(
            timings.firstRetry * (1 << min(max(conversation.briefLinks - 1, 0), 16)), timings.longestRetry)
        let recovery = Recovery(
            deadline: now + grace(after: link), retryAt: redials ? now : now + jittered(pause),
            pause: pause, cause: end.cause, lastResort: betterRouteFailed ? link.transport : nil)
        conversation.keepCounts(of: link)
        changePhase(
            of: peer, to: .reconnecting(conversation, recovery),
            cause: NighError(.conversing, end.cause, peer: peer.label))
        if redials { beginResuming(peer, now: now) }
        watch(peer)
    }

    /// How long a conversation waits for another link.
    private func grace(after link: Link) -> Moment.Span {
        let suggested = transports[link.transport].suggestedGrace
        let isChosen = timings.grace != SessionTimings().grace
        return Moment.Span(isChosen ? timings.grace : max(timings.grace, suggested ?? .zero))
    }

    /// Handles that the peer does not know the conversation. It may know it by the ID of this side's own invitation.
    /// Otherwise the conversation is over.
    mutating func unknownToPeer(_ peer: PeerRecord, now: Moment) {
        guard peer.conversation?.continueAsOwnInvitation() ?? false else {
            return endConversation(of: peer, cause: .unknownConversation, now: now)
        }
        if let link = peer.link {
            // The peer has no use for this link, and the conversation needs one under the other ID.
            end(link, .superseded, because: .linkLost, now: now)
        } else {
            beginResuming(peer, now: now)
        }
    }

    /// Looks for a new link along all routes.
    mutating func beginResuming(_ peer: PeerRecord, now: Moment) {
        guard let recovery = peer.recovery, recovery.attempt == nil else { return }
        let preferred = preferredRoutes(of: peer)
        let routes =
            preferred.filter { $0.transport != recovery.lastResort }
            + preferred.filter { $0.transport == recovery.lastResort }
        guard !routes.isEmpty else { return pause(recovery, of: peer, failures: [], now: now) }
        let race = race(for: .peer(peer.id), along: routes, until: recovery.deadline, isHurried: true)
        recovery.attempt = Attempt(race: race, deadline: recovery.deadline)
        run(race, now: now)
        watch(peer)
    }

    /// Pauses before the next attempt, because no route worked. The pause doubles each time, and lasts at least for the
    /// time that the peer named.
    mutating func pause(
        _ recovery: Recovery, of peer: PeerRecord, failures: [NighError], now: Moment,
        atLeast named: Duration = .zero
    ) {
        recovery.failures = failures
        recovery.notBefore = max(recovery.notBefore, now + Moment.Span(named))
        recovery.retryAt = max(now + jittered(recovery.pause), recovery.notBefore)
        recovery.pause = min(recovery.pause * 2, timings.longestRetry)
        watch(peer)
    }

    /// Returns a random time between three quarters and five quarters of `duration`.
    mutating func jittered(_ duration: Duration) -> Moment.Span {
        generator.jittered(Moment.Span(duration))
    }

    /// Ends the conversation because no link came back in time.
    mutating func giveUpRecovery(of peer: PeerRecord, now: Moment) {
        guard let recovery = peer.recovery else { return }
        let failures = recovery.failures + (recovery.attempt?.race.failures ?? [])
        endConversation(of: peer, cause: recovery.cause, attempts: failures, now: now)
    }

    /// Ends the conversation on this side, in whatever state it is, and notifies the program of the reason.
    mutating func endConversation(
        of peer: PeerRecord, cause: NighError.Cause, attempts: [NighError] = [], now: Moment
    ) {
        guard let conversation = peer.conversation else { return }
        abandonAttempt(of: peer)
        let error = NighError(.conversing, cause, peer: peer.label, attempts: attempts)
        if let link = peer.link {
            failPings(on: link, with: error)
            let code: LinkClose.Code =
                switch cause {
                case .restarted: .restarted
                case .notPaired: .notPaired
                default: .left
                }
            close(link, code)
        }
        conversationsEnded.add(cause.label)
        if let link = peer.link { conversation.keepCounts(of: link) }
        peer.lastCounts = conversation.counts
        let undelivered = conversation.isDrained ? nil : conversation.undeliveredByteCount
        conversation.end(error)
        outbox.forgetRecipients()
        peer.unreadLeft = conversation.unread
        output(.closePort(conversation.port))
        changePhase(of: peer, to: .ended, cause: error)
        for token in conversation.departure?.tokens ?? [] {
            output(.finish(token, departureResult(of: peer, undelivered: undelivered)))
        }
        for flush in conversation.flushes {
            output(.finish(flush.token, undelivered == nil ? .success(peer.id) : .failure(error)))
        }
        cleanUp(peer, now: now)
        if isClosing, census.conversing == 0 { output(.conversationsEnded) }
    }

    /// Ends the conversation with a guest, or its invitation, at once.
    mutating func sendGuestAway(_ id: PeerID, now: Moment) {
        guard let peer = peers[id], peer.isGuest else { return }
        endInvitation(of: peer, cause: .left, code: .left)
        endConversation(of: peer, cause: .left, now: now)
    }

    private func departureResult(of peer: PeerRecord, undelivered: Int?) -> Result<PeerID, NighError> {
        guard let undelivered else { return .success(peer.id) }
        return .failure(
            NighError(
                .sending, .timedOut, peer: peer.label,
                advice: "\(undelivered) bytes were not acknowledged before this side left"))
    }

    // MARK: Leaving

    /// Leaves a peer. Messages sent before are still delivered, within `linger`. An invitation in either direction is
    /// withdrawn or declined.
    mutating func leave(_ id: PeerID, token: CallToken?, now: Moment) {
        guard let peer = peers[id] else { return finish(token, id) }
        if let invitation = peer.invitation {
            decline(peer, invitation, code: .declined, reason: "", retryAfter: 0)
        }
        guard let conversation = peer.conversation else {
            fail(attemptOf: peer, with: .cancelled, now: now)
            return finish(token, id)
        }
        if conversation.departure != nil {
            if let token { conversation.departure?.tokens.append(token) }
            return
        }
        conversation.departure = Departure(
            deadline: now + Moment.Span(timings.linger), tokens: token.map { [$0] } ?? [])
        // While the session closes, the goodbyes of other conversations may travel in streams of this one.
        conversation.stopAccepting(
            NighError(.sending, isClosing ? .closed : .left, peer: peer.label), keepsRelays: isClosing)
        outbox.appendStaged(to: conversation)
        if conversation.isDrained { return finishDeparture(of: peer, now: now) }
        if let link = peer.link { markDirty(link) }
        requestAcknowledgement(from: peer, now: now)
        watch(peer)
    }

    /// Waits until the peer has acknowledged all messages that were accepted by now.
    mutating func flush(_ id: PeerID, token: CallToken, now: Moment) {
        guard let peer = peers[id], let conversation = peer.conversation else {
            let error = NighError(.sending, .notConnected, peer: peers[id]?.label ?? id.short)
            return output(.finish(token, .failure(error)))
        }
        outbox.appendStaged(to: conversation)
        guard conversation.beginFlush(token) else { return finish(token, id) }
        if let link = peer.link { markDirty(link) }
        requestAcknowledgement(from: peer, now: now)
    }

    /// Finishes the calls whose messages the peer has acknowledged.
    mutating func finishFlushes(of conversation: Conversation) {
        for token in conversation.takeFinishedFlushes() { finish(token, conversation.peer) }
    }

    /// Asks the peer for the acknowledgement of the last messages, because a call waits for it. Without a ping the peer
    /// may take its time.
    mutating func requestAcknowledgement(from peer: PeerRecord, now: Moment) {
        guard case .connected(let conversation, let carryingLink) = peer.phase,
            conversation.departure != nil || !conversation.flushes.isEmpty, !conversation.isDrained
        else { return }
        let link = carryingLink.link
        link.machine.sendAutomaticPing(now: now)
        markDirty(link)
    }

    private mutating func finish(_ token: CallToken?, _ id: PeerID) {
        if let token { output(.finish(token, .success(id))) }
    }

    mutating func finishDeparture(of peer: PeerRecord, now: Moment) {
        guard peer.conversation?.departure != nil else { return }
        endConversation(of: peer, cause: .left, now: now)
    }

    /// Leaves all peers and starts nothing new. `Directive.conversationsEnded` follows, after `linger` at the latest.
    mutating func close(now: Moment) {
        guard !isClosing else { return }
        isClosing = true
        for index in transports.indices { addressesForgotten(transport: index) }
        for race in races.values.sorted(by: { $0.number < $1.number }) {
            guard case .address(let call) = race.purpose else { continue }
            stop(race, code: .sessionClosed)
            let error = NighError(.connecting, .closed, peer: call.address.description)
            output(.finish(call.token, .failure(error)))
        }
        let conversing = sortedPeers.filter { $0.conversation != nil }
        let others = sortedPeers.filter { $0.conversation == nil }
        for peer in sortedPeers { endPairing(with: peer, .closed, saying: .declined) }
        for peer in others { leave(peer.id, token: nil, now: now) }
        // Dialled links stay open, because they are for conversations that still have something to deliver.
        let accepted = links.values.filter { $0.purpose == .unsettled && $0.dial == nil }
        for link in accepted.sorted(by: { $0.number < $1.number }) { close(link, .sessionClosed) }
        // Last, because nothing is reported after the last conversation has ended.
        for peer in conversing { leave(peer.id, token: nil, now: now) }
        if census.conversing == 0 { output(.conversationsEnded) }
    }

    // MARK: Reading

    /// Counts bytes of the peer's messages that the program has read, in this conversation or an earlier one.
    mutating func countRead(_ bytes: Int, from peer: PeerRecord) {
        guard bytes > 0 else { return }
        guard let conversation = peer.conversation else {
            peer.unreadLeft -= bytes
            if peer.isIdle { peers[peer.id] = nil }
            return
        }
        conversation.countRead(bytes)
        if conversation.shouldGrantNow, let link = peer.link { acknowledge(conversation, on: link) }
    }

    // MARK: Pings

    /// Sends a ping to the peer, on the link in use or as a datagram.
    mutating func ping(_ id: PeerID, over path: PingPath, payload: [UInt8], token: CallToken, now: Moment) {
        guard let peer = peers[id], let link = peer.link else {
            let error = NighError(.pinging, .notConnected, peer: peers[id]?.label ?? id.short)
            return output(.answerPing(token, .failure(error)))
        }
        guard payload.count <= limits.pingPayload else {
            let error = NighError(.pinging, .limit("ping payload", limits.pingPayload), peer: peer.label)
            return output(.answerPing(token, .failure(error)))
        }
        guard pendingPings(on: link) < limits.pendingPings else {
            let error = NighError(.pinging, .limit("pending pings", limits.pendingPings), peer: peer.label)
            return output(.answerPing(token, .failure(error)))
        }
        if path == .packets {
            return send(.init(call: token.number, padding: payload.count), onPathOf: link, now: now)
        }
        let number = nextNumber()
        pings[number] = (token, link, payload)
        link.machine.ping(token: number, payload: payload, now: now)
        markDirty(link)
    }

    private func pendingPings(on link: Link) -> Int {
        pings.values.reduce(link.packetPings.count + (link.datagrams?.pingCount ?? 0)) {
            $0 + ($1.link === link ? 1 : 0)
        }
    }

    /// Fails the pings of a link, also those sent as datagrams. Their answers come on the link they were sent on, or on
    /// one that took over from it, or never.
    mutating func failPings(on link: Link, with makeError: @autoclosure () -> NighError) {
        let packetPings = link.takePacketPings()
        guard !packetPings.isEmpty || !pings.isEmpty else { return }
        let error = makeError()
        for ping in packetPings { answer(ping, .failure(error)) }
        for (number, waiting) in pings.sorted(by: { $0.key < $1.key }) where waiting.link === link {
            pings[number] = nil
            output(.answerPing(waiting.token, .failure(error)))
        }
    }
}
