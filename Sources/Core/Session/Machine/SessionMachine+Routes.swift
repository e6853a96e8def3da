// Reports of discovery: peers come, change and go with the routes that lead to them.

extension SessionMachine {
    /// Takes a sighting, new or changed. Both are the same here, because a route may be reported twice.
    mutating func routeSeen(_ sighting: Sighting, transport: Int, now: Moment) {
        let advertisement = sighting.advertisement
        guard advertisement.peer != hello.peer, advertisement.service == hello.service else { return }
        guard let peer = record(of: advertisement.peer, name: advertisement.name) else {
            statistics.sightingsIgnored += 1
            return
        }
        let before = (peer.name, peer.info, peer.isFull, peer.routes, peer.identity)
        if let known = peer.routes.firstIndex(where: { $0.address == sighting.address }) {
            peer.routes[known].quality = sighting.quality
            // An introduced route counts among the others from now on, if there is room.
            if peer.routes[known].source != .introduction || hasRoomForRoute(to: peer) {
                peer.routes[known].source = .discovery
            }
        } else if hasRoomForRoute(to: peer) {
            let route = RouteRecord(
                transport: transport, address: sighting.address, quality: sighting.quality)
            peer.routes.append(route)
            resumeSooner(along: route, to: peer, now: now)
        } else {
            statistics.sightingsIgnored += 1
        }
        announce(advertisement.identity, named: advertisement.name, by: peer)
        peer.info = advertisement.info
        peer.isFull = advertisement.isFull
        if let other = peerByAddress.updateValue(peer.id, forKey: sighting.address), other != peer.id {
            removeRoute(sighting.address, of: other)
        }
        if peer.state == .unavailable {
            updateState(of: peer)
        } else if before != (peer.name, peer.info, peer.isFull, peer.routes, peer.identity) {
            reportChange(of: peer)
        }
        considerBetterRoutes(of: peer, now: now)
        watch(peer)
    }

    /// Notes the identity and the name that a peer announces, or that others announce of it. A peer that is known by
    /// its own key acts for nobody else.
    func announce(_ identity: PeerID?, named name: DisplayName, by peer: PeerRecord) {
        if security != .none {
            peer.identity.announce(trust.knows(peer.id) ? nil : identity)
        }
        peer.name = peer.identity.isDelegated ? name.withoutNumber : name
    }

    /// Lets a conversation that looks for a link use a new route. It need not wait for its pause, or for a dial that
    /// nobody answers.
    mutating func resumeSooner(along route: RouteRecord, to peer: PeerRecord, now: Moment) {
        guard let recovery = peer.recovery else { return }
        guard let attempt = recovery.attempt else {
            recovery.retryAt = max(now, recovery.notBefore)
            return
        }
        attempt.race.routes.append(route)
        if races[attempt.race.number] != nil {
            // A dial under way may still get there first.
            attempt.race.lastRouteAt = now
            watch(attempt.race)
        } else if attempt.link != nil {
            attempt.routeDeadline = min(attempt.routeDeadline, now + Moment.Span(timings.nextRoute))
        }
    }

    /// Removes the route at an address where no peer is seen any more.
    mutating func routeLost(_ address: TransportAddress) {
        guard let id = peerByAddress.removeValue(forKey: address) else { return }
        removeRoute(address, of: id)
    }

    /// Removes all sightings of a transport that went down or stopped looking.
    mutating func routesLost(transport: Int) {
        peerByAddress = peerByAddress.filter { $0.key.scheme != transports[transport].scheme }
        for peer in sortedPeers {
            removeRoutes(of: peer) { $0.transport == transport && $0.source == .discovery }
        }
    }

    private mutating func removeRoute(_ address: TransportAddress, of id: PeerID) {
        guard let peer = peers[id] else { return }
        removeRoutes(of: peer) { $0.address == address && $0.source == .discovery }
    }

    /// Whether one more route of discovery or of the program may be kept. Introduced ones have a limit of their own.
    func hasRoomForRoute(to peer: PeerRecord) -> Bool {
        peer.routesBesidesIntroduced < limits.routesPerPeer
    }

    mutating func removeRoutes(of peer: PeerRecord, where isGone: (RouteRecord) -> Bool) {
        guard peer.routes.contains(where: isGone) else { return }
        peer.routes.removeAll(where: isGone)
        // Only discovery tells that there is room again.
        if !peer.routes.contains(where: { $0.source == .discovery }) { peer.isFull = false }
        if let race = peer.attempt?.race {
            race.routes.removeAll(where: isGone)
            // A race that has no other route to try may be lost earlier.
            if races[race.number] === race { watch(race) }
        }
        forgetBetterRoutes(of: peer)
        if peer.state == .available { updateState(of: peer) }
        if peer.state != .unavailable { reportChange(of: peer) }
    }

    /// All records in an order that does not depend on hashing, so that a seed replays.
    var sortedPeers: [PeerRecord] { peers.values.sorted { $0.id < $1.id } }

    /// Returns the routes of a peer, the one to try first in front. They are ordered by the transport's priority, then
    /// by whether the peer has proven itself there, then by quality.
    func preferredRoutes(of peer: PeerRecord) -> [RouteRecord] {
        guard peer.routes.count > 1 else { return peer.routes }
        return peer.routes.enumerated().sorted { left, right in
            let priorities = (
                transports[left.element.transport].priority, transports[right.element.transport].priority
            )
            if priorities.0 != priorities.1 { return priorities.0 < priorities.1 }
            let isProven = (left.element.provenAt != nil, right.element.provenAt != nil)
            if isProven.0 != isProven.1 { return isProven.0 }
            let qualities = (left.element.quality ?? 0.5, right.element.quality ?? 0.5)
            if qualities.0 != qualities.1 { return qualities.0 > qualities.1 }
            return left.offset < right.offset
        }.map(\.element)
    }
}
