// How this session gets a link. It dials routes, and the places behind them, in turn and side by side, until one link
// has proven which peer is at its other end.
//
// The next route starts when nothing is under way, or when the last route has proven nothing for `timings.nextRoute`.
// When a pipe was open for as long without proof, or broke without it, the transport is asked for the places behind the
// route. Those that were not tried yet are dialled all at once, up to a limit. The dials under way go on meanwhile, and
// a slow one may still win. A place where the peer has proven itself before is dialled before its route.

extension SessionMachine {
    /// The most dials that one race has under way at once. When there are as many, the oldest one makes room for the
    /// next after `timings.nextRoute`.
    static let dialsAtOnce = 16

    mutating func race(
        for purpose: DialPurpose, along routes: [RouteRecord], until deadline: Moment, isHurried: Bool = false
    ) -> DialRace {
        DialRace(
            number: nextNumber(), purpose: purpose, routes: routes, deadline: deadline, isHurried: isHurried)
    }

    // MARK: Running

    /// Begins the dials that are due. If nothing is left to begin and nothing is under way, the race is lost.
    mutating func run(_ race: DialRace, now: Moment) {
        races[race.number] = race
        if isOutOfTime(race, now: now) {
            for slow in race.candidates {
                note(NighError(slow.link == nil ? .connecting : .greeting, .timedOut), of: slow, in: race)
            }
            return raceLost(race, now: now)
        }
        if let end = race.placesDeadline, end <= now { race.placesDeadline = nil }
        findPlaces(behindSilentCandidatesOf: race, now: now)
        makeRoom(in: race, now: now)
        if race.candidates.count < Self.dialsAtOnce, !race.routes.isEmpty, isRouteDue(in: race, now: now) {
            race.lastRouteAt = now
            dialNextRoute(of: race, now: now)
        }
        while race.candidates.count < Self.dialsAtOnce, !race.places.isEmpty {
            dial(race.places.removeFirst(), in: race, now: now)
        }
        if race.routes.isEmpty, race.isIdle || hurriedDeadline(of: race) <= now {
            return raceLost(race, now: now)
        }
        watch(race)
    }

    /// Whether the time of a call by address is over. The deadline of every other race is its peer's.
    private func isOutOfTime(_ race: DialRace, now: Moment) -> Bool {
        if case .address(let call) = race.purpose { call.deadline <= now } else { false }
    }

    private mutating func dialNextRoute(of race: DialRace, now: Moment) {
        let route = race.routes[0]
        if let place = route.provenAt, place != route.address, !race.hasSeen(place) {
            return dial(DialRace.Target(route: route, address: place), in: race, now: now)
        }
        race.routes.removeFirst()
        giveUp(dialsOf: route.address, in: race)
        dial(DialRace.Target(route: route, address: route.address), in: race, now: now)
    }

    /// Gives up earlier dials of an address. A route that was seen again is dialled again, and not twice at once,
    /// because the dial under way may never succeed.
    private mutating func giveUp(dialsOf address: TransportAddress, in race: DialRace) {
        for slow in race.candidates where slow.target.address == address { giveUp(slow, in: race) }
    }

    private mutating func giveUp(_ slow: DialRace.Candidate, in race: DialRace) {
        race.candidates.removeAll { $0.dial == slow.dial }
        cancel(slow, code: .tooSlow)
        note(NighError(.connecting, .timedOut), of: slow, in: race)
    }

    /// Returns when a race for a waiting conversation is lost although dials are under way: some dials have failed, and
    /// the others prove nothing.
    private func hurriedDeadline(of race: DialRace) -> Moment {
        guard race.isHurried, !race.failures.isEmpty, race.routes.isEmpty, race.places.isEmpty,
            race.placesDeadline == nil, let youngest = race.candidates.last
        else { return .never }
        return youngest.startedAt + Moment.Span(timings.nextRoute)
    }

    private func isRouteDue(in race: DialRace, now: Moment) -> Bool {
        race.isIdle || race.lastRouteAt + Moment.Span(timings.nextRoute) <= now
    }

    /// Returns when something of the race is due.
    func deadline(of race: DialRace) -> Moment {
        let delay = Moment.Span(timings.nextRoute)
        var deadline = min(race.placesDeadline ?? .never, hurriedDeadline(of: race))
        if case .address(let call) = race.purpose { deadline = min(deadline, call.deadline) }
        let isFull = race.candidates.count >= Self.dialsAtOnce
        if !race.routes.isEmpty, !isFull { deadline = min(deadline, race.lastRouteAt + delay) }
        if isFull, race.isWaiting { deadline = min(deadline, race.candidates[0].startedAt + delay) }
        for candidate in race.candidates where candidate.mayHidePlaces {
            if let link = candidate.link { deadline = min(deadline, link.openedAt + delay) }
        }
        return deadline
    }

    private mutating func dial(_ target: DialRace.Target, in race: DialRace, now: Moment) {
        let dial = DialID(number: nextNumber())
        dials[dial.number] = race
        race.noteSeen(target.address)
        race.candidates.append(
            DialRace.Candidate(dial: dial, target: target, startedAt: now, mayHidePlaces: !target.isPlace))
        statistics.dials += 1
        let left = max((race.deadline - now).duration, .milliseconds(1))
        output(
            .dial(dial, transport: target.route.transport, target.address, timeout: min(timings.dial, left)))
    }

    /// Notes the link that a dial of the race has led to. Which peer is there is still to be proven.
    mutating func reached(_ place: TransportAddress?, by link: Link, in race: DialRace) {
        guard let index = race.candidates.firstIndex(where: { $0.dial == link.dial }) else { return }
        race.candidates[index].link = link
        if let place { race.noteSeen(place) }
        watch(race)
    }

    private mutating func makeRoom(in race: DialRace, now: Moment) {
        let delay = Moment.Span(timings.nextRoute)
        while race.candidates.count >= Self.dialsAtOnce, race.isWaiting,
            race.candidates[0].startedAt + delay <= now
        {
            giveUp(race.candidates[0], in: race)
        }
    }

    // MARK: Places

    private mutating func findPlaces(behindSilentCandidatesOf race: DialRace, now: Moment) {
        let delay = Moment.Span(timings.nextRoute)
        for index in race.candidates.indices where race.candidates[index].mayHidePlaces {
            guard let link = race.candidates[index].link, link.openedAt + delay <= now else { continue }
            race.candidates[index].mayHidePlaces = false
            findPlaces(behind: race.candidates[index].target.route, for: race, now: now)
        }
    }

    private mutating func findPlaces(behind route: RouteRecord, for race: DialRace, now: Moment) {
        race.placesDeadline = now + Moment.Span(timings.nextRoute)
        output(.findPlaces(race: race.number, behind: route))
    }

    /// Takes the places behind a route of the race, which the transport has found.
    mutating func placesFound(
        _ places: [TransportAddress], behind route: RouteRecord, race number: UInt64, now: Moment
    ) {
        guard let race = races[number] else { return }
        race.placesDeadline = nil
        for place in places.prefix(limits.placesPerRoute) where race.noteSeen(place) {
            race.places.append(DialRace.Target(route: route, address: place))
        }
        run(race, now: now)
    }

    // MARK: Failures

    /// Handles a dial for which the transport could not open a pipe.
    mutating func dialFailed(_ dial: DialID, error: NighError, now: Moment) {
        guard dials[dial.number] != nil else { return }
        statistics.dialsFailed[error.cause.label, default: 0] += 1
        candidateFailed(dial, error: error, now: now)
    }

    /// Handles a dial that led to no link, or to a link that ended before it had proven which peer is there.
    mutating func candidateFailed(_ dial: DialID, error: NighError, now: Moment) {
        guard let race = dials.remove(dial.number),
            let index = race.candidates.firstIndex(where: { $0.dial == dial })
        else { return }
        let failed = race.candidates.remove(at: index)
        note(error, of: failed, in: race)
        // If no pipe opened, the transport has tried all places itself.
        if failed.link != nil {
            if failed.mayHidePlaces { findPlaces(behind: failed.target.route, for: race, now: now) }
            note(failed.target, isProven: false, in: race)
        }
        run(race, now: now)
    }

    /// Continues a race with the routes that are left, because the link that it had found was of no use.
    mutating func continueRace(_ race: DialRace, after error: NighError, now: Moment) {
        race.failures.append(error.about(label(of: race.purpose)))
        run(race, now: now)
    }

    private func note(_ error: NighError, of failed: DialRace.Candidate, in race: DialRace) {
        var error = error.about(label(of: race.purpose))
        error.transport = error.transport ?? transports[failed.target.route.transport].scheme
        race.failures.append(error)
    }

    /// Notes that the peer has proven itself at an address, or that something answered there without proof.
    private func note(_ target: DialRace.Target, isProven: Bool, in race: DialRace) {
        guard let id = race.purpose.peer, let peer = peers[id],
            let index = peer.routes.firstIndex(where: { $0.address == target.route.address }),
            isProven || peer.routes[index].provenAt == target.address
        else { return }
        peer.routes[index].provenAt = isProven ? target.address : nil
    }

    private func label(of purpose: DialPurpose) -> String? {
        switch purpose {
        case .peer(let id), .pairing(let id): peers[id]?.label
        case .address(let call): call.address.description
        case .knownAddress(let known): known.address.description
        }
    }

    // MARK: Ending

    /// Ends a race that `link` has won by proving which peer is there, and cancels its other dials. The routes that are
    /// left stay, in case the link is of no use.
    mutating func raceWon(_ race: DialRace, by link: Link) {
        if let index = race.candidates.firstIndex(where: { $0.dial == link.dial }) {
            let winner = race.candidates.remove(at: index)
            dials[winner.dial.number] = nil
            note(winner.target, isProven: true, in: race)
        }
        stop(race, code: .superseded)
    }

    /// Cancels everything that the race has under way.
    mutating func stop(_ race: DialRace, code: LinkClose.Code = .cancelled) {
        let candidates = race.candidates
        race.candidates = []
        race.places = []
        race.placesDeadline = nil
        race.wakesAt = .never
        races[race.number] = nil
        for candidate in candidates { cancel(candidate, code: code) }
    }

    private mutating func cancel(_ candidate: DialRace.Candidate, code: LinkClose.Code) {
        dials[candidate.dial.number] = nil
        if let link = candidate.link {
            close(link, code)
        } else {
            output(.cancelDial(candidate.dial, transport: candidate.target.route.transport))
        }
    }

    private mutating func raceLost(_ race: DialRace, now: Moment) {
        stop(race, code: .tooSlow)
        switch race.purpose {
        case .peer(let id):
            guard let peer = peers[id], peer.attempt?.race === race else { return }
            fail(attemptOf: peer, with: race.failures.isEmpty ? .allFailed : race.cause, now: now)
        case .pairing(let id):
            guard let peer = peers[id], peer.pairing?.race === race else { return }
            endPairing(with: peer, race.cause, saying: nil)
        case .address(let call): output(.finish(call.token, .failure(race.failure)))
        case .knownAddress(let known): knownAddressFailed(known, error: race.failure, now: now)
        }
    }
}
