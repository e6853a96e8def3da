// Addresses of peers that other peers have given. They are routes like those that discovery finds, until they are taken
// back.

extension SessionMachine {
    /// The most addresses from other peers that are kept for one peer, besides those of discovery.
    static let introducedRoutes = 6

    /// Takes the addresses at which a peer can be reached, in place of those that were given before. Addresses of
    /// transports that this session does not have are left out.
    mutating func introduce(_ introduced: IntroducedPeer, now: Moment) {
        guard introduced.id != hello.peer, !isClosing,
            peers[introduced.id] != nil || !introduced.addresses.isEmpty,
            let peer = record(of: introduced.id, name: introduced.name)
        else { return }
        let before = (peer.name, peer.info, peer.identity)
        // Discovery is newer, and once there is a conversation only the peer itself gives its name.
        let isSeen = peer.routes.contains { $0.source == .discovery }
        if introduced.isByItself ? !isSeen : !isSeen && !peer.state.hasConversation {
            announce(introduced.identity, named: introduced.name, by: peer)
            peer.info = introduced.info
        }
        var added: [RouteRecord] = []
        for address in introduced.addresses where added.count < Self.introducedRoutes {
            guard let transport = transports.firstIndex(where: { $0.scheme == address.scheme }),
                !added.contains(where: { $0.address == address })
            else { continue }
            added.append(RouteRecord(transport: transport, address: address, source: .introduction))
        }
        let isStale = { (route: RouteRecord) in
            route.source == .introduction && !added.contains { $0.address == route.address }
        }
        let new = added.filter { route in !peer.routes.contains { $0.address == route.address } }
        for route in new {
            peer.routes.append(route)
            resumeSooner(along: route, to: peer, now: now)
        }
        removeRoutes(of: peer, where: isStale)
        if peer.state == .unavailable {
            updateState(of: peer)
        } else if !new.isEmpty || before != (peer.name, peer.info, peer.identity) {
            reportChange(of: peer)
        }
        considerBetterRoutes(of: peer, now: now)
        watch(peer)
    }

    /// Takes back the addresses of a peer that others have given.
    mutating func forgetIntroduction(of id: PeerID) {
        guard let peer = peers[id] else { return }
        removeRoutes(of: peer) { $0.source == .introduction }
        if peer.isIdle { peers[id] = nil }
    }
}
