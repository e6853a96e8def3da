// Addresses that a transport was given and that nobody is seen at: the machine dials them itself, learns from the hello who
// is there, and from then on has a route to that peer like any other. It looks again from time to time, since nothing else
// would tell that somebody came there, or went.

extension SessionMachine {
    /// A transport knows of an address: find out who is there. Told again, it is dialled again at once.
    func addressKnown(_ address: TransportAddress, transport: Int, now: Moment) {
        guard !isClosing else { return }
        if let known = knownAddresses.first(where: { $0.address == address }) {
            return visit(known, now: now)
        }
        guard knownAddresses.count < limits.knownAddresses else {
            statistics.sightingsIgnored += 1
            return
        }
        let known = KnownAddress(
            number: nextNumber(), address: address, transport: transport, pause: timings.addressRetry)
        knownAddresses.append(known)
        visit(known, now: now)
    }

    /// The transport looks for nobody any more. The routes are taken away by `routesLost`.
    func addressesForgotten(transport: Int) {
        let forgotten = knownAddresses.filter { $0.transport == transport }
        knownAddresses.removeAll { $0.transport == transport }
        for known in forgotten {
            if let race = known.race { stop(race) }
            known.race = nil
        }
    }

    /// The transport came up: an address that led nowhere may lead somewhere now.
    func visitAddresses(transport: Int, now: Moment) {
        for known in knownAddresses where known.transport == transport { visit(known, now: now) }
    }

    /// Something speaks against the peer being where it was: look.
    func visitAddresses(of peer: PeerID, now: Moment) {
        for known in knownAddresses where peerByAddress[known.address] == peer { visit(known, now: now) }
    }

    /// It is time to look at an address again.
    func addressTimeArrived(_ number: UInt64, now: Moment) {
        guard let known = knownAddresses.first(where: { $0.number == number }), known.dueAt <= now else {
            return
        }
        visit(known, now: now)
    }

    private func visit(_ known: KnownAddress, now: Moment) {
        guard known.race == nil, !isClosing else { return }
        // A conversation proves more than a visit could.
        guard !isEngaged(at: known.address) else {
            return look(at: known, after: Moment.Span(timings.addressCheck), now: now)
        }
        known.dueAt = .never
        let race = race(
            for: .introduction(known),
            along: [RouteRecord(transport: known.transport, address: known.address)],
            until: now + Moment.Span(timings.dial))
        known.race = race
        run(race, now: now)
    }

    private func isEngaged(at address: TransportAddress) -> Bool {
        guard let id = peerByAddress[address], let peer = peers[id] else { return false }
        return peer.state.isEngaged
    }

    private func look(at known: KnownAddress, after span: Moment.Span, now: Moment) {
        known.dueAt = now + span
        watch(known)
    }

    /// Whoever is at a known address has said who it is. That was all this link is for.
    func introduced(_ hello: Hello, at known: KnownAddress, on link: Link, now: Moment) {
        close(link, .cancelled)
        let advertisement = Advertisement(
            service: hello.service, peer: hello.peer, name: hello.name,
            info: peers[hello.peer]?.info ?? .none)
        routeSeen(
            Sighting(address: known.address, advertisement: advertisement), transport: known.transport,
            now: now)
        guard peers[hello.peer] != nil else {
            return visitFailed(
                known, error: NighError(.greeting, .limit("known peers", limits.knownPeers)), now: now)
        }
        known.race = nil
        known.pause = timings.addressRetry
        known.toldCause = nil
        look(at: known, after: Moment.Span(timings.addressCheck), now: now)
    }

    /// Nobody answered at a known address, or nobody this session can talk to.
    func visitFailed(_ known: KnownAddress, error: NighError, now: Moment) {
        known.race = nil
        // The address may be somebody else's one day; nothing is wrong with it.
        let isOwn = error.cause == .selfDial
        let pause = isOwn ? timings.longestAddressRetry : known.pause
        known.pause = min(known.pause * 2, timings.longestAddressRetry)
        look(at: known, after: jittered(pause), now: now)
        if !isEngaged(at: known.address) { routeLost(known.address) }
        guard !isOwn, known.toldCause != error.cause else { return }
        known.toldCause = error.cause
        var error = error.about(known.address.description)
        error.transport = transports[known.transport].scheme
        if error.stage == .greeting, error.advice == nil {
            error.advice = "is it a program of this kind that listens there?"
        }
        output(.tell(.transportFailed(error)))
    }
}
