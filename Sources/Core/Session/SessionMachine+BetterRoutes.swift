// A conversation that had to take a worse route goes back to a better one once that has been there for a while.
//
// It does so as after a lost link, by a resume on a new one, but with the old link still alive: should the better route
// turn out to be none, nothing has happened. From the resume to its answer nothing that comes on the old link is taken in.
// The other side sends again whatever the resume does not claim, and taking it in from both links would double it.

extension SessionMachine {
    /// Routes of a better transport than the one in use, the best first.
    private func betterRoutes(of peer: PeerRecord) -> [RouteRecord] {
        guard let link = peer.link else { return [] }
        let inUse = transports[link.transport].priority
        return preferredRoutes(of: peer).filter { transports[$0.transport].priority < inUse }
    }

    /// Whether nothing is going on that a new link would disturb.
    func mayMove(_ peer: PeerRecord) -> Bool {
        peer.state == .connected && peer.pairing == nil && peer.conversation?.departure == nil && !isClosing
    }

    /// To be called when routes or the link in use have changed: a better route has to be there for a while, without a break.
    func considerBetterRoutes(of peer: PeerRecord, now: Moment) {
        guard let carrier = peer.carrier else { return }
        if betterRoutes(of: peer).isEmpty {
            carrier.movesAt = .never
        } else if carrier.attempt == nil, carrier.movesAt == .never {
            waitForBetterRoute(of: peer, now: now)
        }
    }

    /// To be called when routes are gone.
    func forgetBetterRoutes(of peer: PeerRecord) {
        if betterRoutes(of: peer).isEmpty { peer.carrier?.movesAt = .never }
    }

    /// Both sides may see the better route, or only one: the side with the smaller PeerID waits twice as long, so that
    /// the two seldom move at once.
    private func waitForBetterRoute(of peer: PeerRecord, now: Moment) {
        var pause = min(timings.betterRoute * (1 << min(peer.vainMoves, 16)), timings.longestBetterRoute)
        if hello.peer < peer.id { pause = pause * 2 }
        peer.carrier?.movesAt = now + jittered(pause)
        watch(peer)
    }

    /// The better route has been there for long enough.
    func move(_ peer: PeerRecord, now: Moment) {
        guard let carrier = peer.carrier else { return }
        carrier.movesAt = .never
        let routes = betterRoutes(of: peer)
        guard carrier.attempt == nil, !routes.isEmpty else { return }
        guard mayMove(peer) else { return waitForBetterRoute(of: peer, now: now) }
        let deadline = now + Moment.Span(timings.dial) + Moment.Span(timings.handshake)
        let race = race(for: .peer(peer.id), along: routes, until: deadline)
        carrier.attempt = Attempt(race: race, deadline: deadline)
        run(race, now: now)
        watch(peer)
    }

    /// The better route led nowhere: the conversation stays where it is, and waits longer before it tries again; at least as
    /// long as the peer wants not to be asked.
    func moveFailed(of peer: PeerRecord, now: Moment, retryAfter: Duration) {
        peer.vainMoves += 1
        considerBetterRoutes(of: peer, now: now)
        guard let carrier = peer.carrier, carrier.movesAt != .never else { return }
        carrier.movesAt = max(carrier.movesAt, now + Moment.Span(retryAfter))
    }

    /// Another link may take over: what comes on this one stays where it is until that one's answer.
    func hold(_ link: Link) {
        link.isHeld = true
        output(.hold(link))
    }

    /// There will be no other link for now: what comes on the one in use counts again.
    func release(linkOf peer: PeerRecord) {
        guard let link = peer.link, link.isHeld, link.purpose != .finished else { return }
        link.isHeld = false
        output(.release(link))
        watch(link)
    }

    /// `link` has taken over from the one before, which is ended. Pings that wait are asked once more, and a pairing that
    /// shows no digits yet begins anew.
    func replaceLink(of peer: PeerRecord, by link: Link, now: Moment) {
        guard let old = peer.link, old !== link else { return }
        link.isBetter = transports[link.transport].priority < transports[old.transport].priority
        for (number, waiting) in pings.sorted(by: { $0.key < $1.key }) where waiting.link === old {
            pings[number]?.link = link
            link.machine.ping(token: number, payload: waiting.payload, now: now)
        }
        movePairing(with: peer, from: old, to: link, now: now)
        close(old, .superseded)
    }

    /// The link is lost. Where it was a better one, how long it lasted decides how soon such a route is tried again.
    func noteLoss(of link: Link, with peer: PeerRecord, now: Moment) {
        guard link.isBetter else { return }
        let hasLasted = now - link.carriesSince >= Moment.Span(timings.longestBetterRoute)
        peer.vainMoves = hasLasted ? 0 : peer.vainMoves + 1
    }
}
