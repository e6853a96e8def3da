// Addresses that a transport was given and at which discovery sees no peer. The machine dials them itself, learns from
// the hello which peer is there, and from then on has a route to that peer like any other. It looks again from time to
// time, because nothing else would report that a peer came or went.

extension SessionMachine {
    /// Takes an address that a transport knows, to find out which peer is there. If it is reported again, it is dialled
    /// again at once.
    mutating func addressKnown(_ address: TransportAddress, transport: Int, now: Moment) {
        guard !isClosing else { return }
        if let known = knownAddresses.first(where: { $0.address == address }) {
            return dialKnownAddress(known, now: now)
        }
        guard knownAddresses.count < limits.knownAddresses else {
            statistics.sightingsIgnored += 1
            return
        }
        let known = KnownAddress(
            number: nextNumber(), address: address, transport: transport, pause: timings.addressRetry)
        knownAddresses.append(known)
        dialKnownAddress(known, now: now)
    }

    /// Forgets the addresses of a transport that looks for no peers any more. `routesLost` removes the routes.
    mutating func addressesForgotten(transport: Int) {
        let forgotten = knownAddresses.filter { $0.transport == transport }
        knownAddresses.removeAll { $0.transport == transport }
        for known in forgotten {
            if let race = known.race { stop(race) }
            known.race = nil
        }
    }

    /// Tries the addresses of a transport again after it came up, because a peer may answer there now.
    mutating func dialKnownAddresses(transport: Int, now: Moment) {
        for known in knownAddresses where known.transport == transport { dialKnownAddress(known, now: now) }
    }

    /// Looks again at the addresses where the peer was seen, because it may not be there any more.
    mutating func dialKnownAddresses(of peer: PeerID, now: Moment) {
        for known in knownAddresses where peerByAddress[known.address] == peer {
            dialKnownAddress(known, now: now)
        }
    }

    /// Looks at an address again when that is due.
    mutating func addressTimeArrived(_ number: UInt64, now: Moment) {
        guard let known = knownAddresses.first(where: { $0.number == number }), known.dueAt <= now else {
            return
        }
        dialKnownAddress(known, now: now)
    }

    private mutating func dialKnownAddress(_ known: KnownAddress, now: Moment) {
        guard known.race == nil, !isClosing else { return }
        // A conversation proves more than a dial could.
        guard !isEngaged(at: known.address) else {
            return scheduleDial(of: known, after: Moment.Span(timings.addressCheck), now: now)
        }
        known.dueAt = .never
        let race = race(
            for: .knownAddress(known),
            along: [RouteRecord(transport: known.transport, address: known.address)],
            until: now + Moment.Span(timings.dial))
        known.race = race
        run(race, now: now)
    }

    private func isEngaged(at address: TransportAddress) -> Bool {
        guard let id = peerByAddress[address], let peer = peers[id] else { return false }
        return peer.state.isEngaged
    }

    private mutating func scheduleDial(of known: KnownAddress, after span: Moment.Span, now: Moment) {
        known.dueAt = now + span
        watch(known)
    }

    /// Handles the hello of the peer at a known address. The link has no other purpose.
    mutating func knownAddressAnswered(_ hello: Hello, at known: KnownAddress, on link: Link, now: Moment) {
        close(link, .cancelled)
        let advertisement = Advertisement(
            service: hello.service, peer: hello.peer, name: hello.name,
            info: peers[hello.peer]?.info ?? .none, isFull: peers[hello.peer]?.isFull ?? false,
            identity: link.machine.provenIdentity.flatMap { $0 == hello.peer ? nil : $0 })
        routeSeen(
            Sighting(address: known.address, advertisement: advertisement), transport: known.transport,
            now: now)
        guard record(of: hello, on: link) != nil else {
            return knownAddressFailed(
                known, error: NighError(.greeting, .limit("known peers", limits.knownPeers)), now: now)
        }
        known.race = nil
        known.pause = timings.addressRetry
        known.reportedCause = nil
        scheduleDial(of: known, after: Moment.Span(timings.addressCheck), now: now)
    }

    /// Handles a dial that reached no peer, or none that this session can talk to.
    mutating func knownAddressFailed(_ known: KnownAddress, error: NighError, now: Moment) {
        known.race = nil
        // The address leads to this session itself, and so may all places behind a name. It may be another peer's one
        // day, so nothing is wrong with it.
        let isOwn =
            error.cause == .selfDial
            || !error.attempts.isEmpty && error.attempts.allSatisfy { $0.cause == .selfDial }
        let pause = isOwn ? timings.longestAddressRetry : known.pause
        known.pause = min(known.pause * 2, timings.longestAddressRetry)
        scheduleDial(of: known, after: jittered(pause), now: now)
        if !isEngaged(at: known.address) { routeLost(known.address) }
        guard !isOwn, known.reportedCause != error.cause else { return }
        known.reportedCause = error.cause
        var error = error.about(known.address.description)
        error.transport = transports[known.transport].scheme
        if error.stage == .greeting, error.advice == nil {
            error.advice = "check that a program of this service listens there"
        }
        report(.problem(error))
    }
}
