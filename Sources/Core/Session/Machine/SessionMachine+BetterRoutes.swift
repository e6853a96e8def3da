// A conversation that had to take a worse route goes back to a better one after that one has been there for a while.
//
// The move works like a resume after a lost link, but the old link is still alive: if the better route does not work,
// nothing has changed. Between the resume and its answer, this side processes nothing that comes on the old link. The
// other side sends everything again that the resume does not claim, so it would be delivered twice.

extension SessionMachine {
    /// Returns the routes of a better transport than the one in use, the best first.
    private func betterRoutes(of peer: PeerRecord) -> [RouteRecord] {
        guard let link = peer.link else { return [] }
        let inUse = transports[link.transport].priority
        return preferredRoutes(of: peer).filter { transports[$0.transport].priority < inUse }
    }

    /// Returns whether the conversation may move to another link now, because nothing is going on that would suffer.
    func canMoveConversation(of peer: PeerRecord) -> Bool {
        peer.state == .connected && peer.pairing == nil && peer.conversation?.departure == nil && !isClosing
    }

    /// Starts or stops the wait for a better route, which has to be there for a while without a break. Call it when
    /// routes or the link in use have changed.
    mutating func considerBetterRoutes(of peer: PeerRecord, now: Moment) {
        guard let carryingLink = peer.carryingLink else { return }
        if betterRoutes(of: peer).isEmpty {
            carryingLink.movesAt = .never
        } else if carryingLink.attempt == nil, carryingLink.movesAt == .never {
            waitForBetterRoute(of: peer, now: now)
        }
    }

    /// Stops the wait for a better route if there is none any more. Call it when routes are gone.
    func forgetBetterRoutes(of peer: PeerRecord) {
        if betterRoutes(of: peer).isEmpty { peer.carryingLink?.movesAt = .never }
    }

    /// Schedules the move to a better route. Both sides may see that route, or only one. The side with the smaller
    /// PeerID waits twice as long, so that the two seldom move at once.
    private mutating func waitForBetterRoute(of peer: PeerRecord, now: Moment) {
        var pause = min(timings.betterRoute * (1 << min(peer.failedMoves, 16)), timings.longestBetterRoute)
        if hello.peer < peer.id { pause = pause * 2 }
        peer.carryingLink?.movesAt = now + jittered(pause)
        watch(peer)
    }

    /// Starts a move, after the better route has been there for long enough.
    mutating func moveConversation(of peer: PeerRecord, now: Moment) {
        guard let carryingLink = peer.carryingLink else { return }
        carryingLink.movesAt = .never
        let routes = betterRoutes(of: peer)
        guard carryingLink.attempt == nil, !routes.isEmpty else { return }
        guard canMoveConversation(of: peer) else { return waitForBetterRoute(of: peer, now: now) }
        let deadline = now + Moment.Span(timings.dial) + Moment.Span(timings.handshake)
        let race = race(for: .peer(peer.id), along: routes, until: deadline)
        carryingLink.attempt = Attempt(race: race, deadline: deadline)
        run(race, now: now)
        watch(peer)
    }

    /// Handles a failed move: the conversation stays where it is, and waits longer before it tries again, at least for
    /// the time that the peer named.
    mutating func moveFailed(of peer: PeerRecord, now: Moment, retryAfter: Duration) {
        peer.failedMoves += 1
        considerBetterRoutes(of: peer, now: now)
        guard let carryingLink = peer.carryingLink, carryingLink.movesAt != .never else { return }
        carryingLink.movesAt = max(carryingLink.movesAt, now + Moment.Span(retryAfter))
    }

    /// Stops reading a link, because another link may take over. Bytes that come stay unread until the answer on the
    /// other link.
    mutating func hold(_ link: Link) {
        link.isHeld = true
        output(.hold(link))
    }

    /// Reads the link in use again, because no other link takes over for now.
    mutating func release(linkOf peer: PeerRecord) {
        guard let link = peer.link, link.isHeld, link.purpose != .finished else { return }
        link.isHeld = false
        output(.release(link))
        watch(link)
    }

    /// Notes the loss of a link. If it was a better link, the time that it lasted decides how soon such a route is
    /// tried again.
    func noteLoss(of link: Link, with peer: PeerRecord, now: Moment) {
        guard link.isBetter else { return }
        let hasLasted = now - link.carriesSince >= Moment.Span(timings.longestBetterRoute)
        peer.failedMoves = hasLasted ? 0 : peer.failedMoves + 1
    }
}
