/// All a session decides: who is there, who is asked, which link carries which conversation, what happens when one
/// breaks.
///
/// A machine without I/O, clock or threads. Inputs are calls (a route was found, a pipe opened, bytes came, time has
/// passed, the program wants something), each with the time where it matters; outputs are taken from `nextDirective`,
/// `nextDirtyLink` and `nextDelivery`. The same inputs give the same outputs: all chance comes from the seed. `SessionDriver`
/// connects it to transports; loop only.
final class SessionMachine {
    /// A transport as far as the machine needs to know it.
    struct TransportTraits {
        let scheme: String
        let priority: Int
    }

    private(set) var hello: Hello
    let limits: SessionLimits
    let timings: SessionTimings
    let transports: [TransportTraits]
    private let offer: SecureChannelOffer
    let security: SessionSecurity
    /// What is known of peers' keys.
    let trust: TrustStore
    /// Whether others may ask to be paired.
    var acceptsPairing = false

    var peers: [PeerID: PeerRecord] = [:]
    /// Whom discovery last saw at an address.
    var peerByAddress: [TransportAddress: PeerID] = [:]
    /// Where somebody may be whom nothing announces.
    var knownAddresses: [KnownAddress] = []
    var links: [UInt64: Link] = [:]
    /// What is dialled, and for which race.
    var dials: [DialID: DialRace] = [:]
    /// Searches for a link that go on, by number.
    var races: [UInt64: DialRace] = [:]
    var pings: [UInt64: (token: CallToken, link: Link, payload: [UInt8])] = [:]
    var statistics = SessionStatistics()
    var generator: SeededGenerator
    @exclusivity(unchecked) var outbox = Outbox()
    /// What other threads send is encoded in these.
    let stagingChunks = PeerPort.makeChunks()
    /// Large messages are put together and copied in these.
    let largeChunks = LargeChunks()
    private var watchesLargeChunks = false
    /// Set by `close`: no invitations either way any more.
    var isClosing = false
    /// Set by `end`: nothing is decided any more.
    private(set) var isOver = false

    // Asked for each message, on the loop alone and never across a call out, hence without the check at run time; the outbox
    // above likewise.
    @exclusivity(unchecked) private var directives = Ring<Directive>()
    @exclusivity(unchecked) private var dirtyLinks = Ring<Link>()
    @exclusivity(unchecked) private var wakeups = TimerQueue<Wakeup>()
    private var lastNumber: UInt64 = 0
    /// Numbers this session's requests, whomever they go to: a peer can tell a late one from the latest, also after its
    /// record here was forgotten in between.
    var requestsMade: UInt64 = 0

    private enum Wakeup {
        case link(UInt64)
        case peer(PeerID)
        case address(UInt64)
        case race(UInt64)
        case largeChunks
    }

    init(
        hello: Hello, limits: SessionLimits, timings: SessionTimings, transports: [TransportTraits],
        offer: SecureChannelOffer, security: SessionSecurity, trust: TrustStore, seed: UInt64
    ) {
        self.hello = hello
        self.limits = limits
        self.timings = timings
        self.transports = transports
        self.offer = offer
        self.security = security
        self.trust = trust
        generator = SeededGenerator(seed: seed)
    }

    // MARK: Outputs

    /// The next thing to do.
    func nextDirective() -> Directive? { directives.popFirst() }

    /// The next link that may have something to write. The driver gathers it, if its pipe has room.
    func nextDirtyLink() -> Link? {
        guard let link = dirtyLinks.popFirst() else { return nil }
        link.isDirty = false
        return link
    }

    var hasDirtyLinks: Bool { !dirtyLinks.isEmpty }

    /// When `timeArrived` must be called next; the moment may turn out to be early, never late.
    var deadline: Moment { wakeups.earliest ?? .never }

    var hasDirectives: Bool { !directives.isEmpty }

    func output(_ directive: Directive) { directives.append(directive) }

    @inline(__always)
    func markDirty(_ link: Link) {
        guard !link.isDirty else { return }
        link.isDirty = true
        dirtyLinks.append(link)
    }

    /// A number never given out before by this machine.
    func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    // MARK: Pipes

    /// A pipe is open. The link to feed with what it brings, or nil when the pipe is to be closed at once.
    ///
    /// - Parameter place: the other end's address, where it can be told.
    func pipeOpened(transport: Int, dial: DialID?, at place: TransportAddress?, now: Moment) -> Link? {
        let race = dial.flatMap { dials[$0] }
        if dial != nil {
            guard race != nil else { return nil }
        } else {
            statistics.pipesAccepted += 1
            guard !isClosing, hasRoomForStranger() else {
                statistics.pipesRefused += 1
                return nil
            }
        }
        var settings = LinkMachine.Settings(hello: hello, timings: timings.link, offer: offer)
        if let id = race?.purpose.peer {
            settings.expected = id
            settings.ticket = peers[id]?.takeTicket()
        }
        let machine = LinkMachine(side: dial == nil ? .accepting : .dialling, settings: settings, now: now)
        let link = Link(number: nextNumber(), machine: machine, transport: transport, dial: dial, now: now)
        links[link.number] = link
        markDirty(link)
        watch(link)
        if let race { reached(place, by: link, in: race) }
        return link
    }

    /// The pipe brought bytes. Follow with `nextDelivery` until it is nil, then with `finishReceiving`.
    func received(_ bytes: ByteSlice, on link: Link, now: Moment) { link.machine.receive(bytes, now: now) }

    /// The pipe broke or was closed by the other side.
    func pipeClosed(_ link: Link, error: NighError?, now: Moment) {
        guard link.purpose != .finished else { return }
        link.machine.pipeClosed()
        linkEnded(
            link, LinkMachine.LinkEnd(cause: error?.cause ?? .linkLost, code: nil, saidByPeer: false),
            now: now)
    }

    /// Ends a link from this side, with a goodbye that says why.
    ///
    /// - Parameter cause: what this side counts and records, where the code means something else to the peer.
    func close(
        _ link: Link, _ code: LinkClose.Code, _ words: String = "", because cause: NighError.Cause? = nil
    ) {
        guard link.purpose != .finished else { return }
        link.machine.close(code, words, because: cause ?? .left)
        count(end: cause ?? LinkClose(code, words).cause)
        discard(link)
        if let peer = link.peer, peer.pairing?.link === link { endPairing(with: peer, .left, saying: nil) }
    }

    /// Ends a link from this side for something that the peer did or failed to do: the goodbye says why, and what the link
    /// was for has failed.
    func end(
        _ link: Link, _ code: LinkClose.Code, _ words: String = "", because cause: NighError.Cause,
        now: Moment
    ) {
        link.machine.close(code, words, because: cause)
        if let end = link.machine.end { linkEnded(link, end, now: now) }
    }

    /// Forgets a link whose machine has said its last, and has its pipe closed.
    func discard(_ link: Link) {
        guard link.purpose != .finished else { return }
        link.purpose = .finished
        link.conversation = nil
        links[link.number] = nil
        forgetStaleWakeups()
        output(.close(link))
        guard let peer = link.peer else { return }
        peer.keepTicket(of: link)
        failPings(on: link, with: NighError(.pinging, .linkLost, peer: peer.label))
        peer.linkCount -= 1
        if peer.isIdle { peers[peer.id] = nil }
    }

    func count(end cause: NighError.Cause) { statistics.linksEnded[cause.label, default: 0] += 1 }

    /// Others see this session under `name`, because somebody has its own already. It says so of itself from now on: who has
    /// found "Puma #2" does not end up with a second "Puma".
    func isAdvertised(as name: DisplayName) { hello.name = name }

    /// Everything has been taken down: ends what is left of the conversations.
    func end(_ error: NighError) {
        isOver = true
        outbox.forgetRecipients()
        for peer in sortedPeers { peer.conversation?.end(error) }
    }

    // MARK: Time

    /// Does what is due.
    func timeArrived(now: Moment) {
        while let wakeup = wakeups.takeDue(at: now) {
            switch wakeup {
            case .link(let number):
                guard let link = links[number], link.wakesAt <= now else { continue }
                link.wakesAt = .never
                linkTimeArrived(link, now: now)
                if link.purpose != .finished { watch(link) }
            case .peer(let id):
                guard let peer = peers[id], peer.wakesAt <= now else { continue }
                peer.wakesAt = .never
                peerTimeArrived(peer, now: now)
                if peers[id] === peer { watch(peer) }
            case .address(let number): addressTimeArrived(number, now: now)
            case .race(let number):
                guard let race = races[number], race.wakesAt <= now else { continue }
                race.wakesAt = .never
                run(race, now: now)
            case .largeChunks:
                watchesLargeChunks = false
                if largeChunks.giveUpUnused() { watchLargeChunks(now: now) }
            }
        }
    }

    /// Sees to it that the link is looked at when its next deadline comes.
    @inline(__always)
    func watch(_ link: Link) {
        let deadline = deadline(of: link)
        guard deadline < link.wakesAt else { return }
        link.wakesAt = deadline
        wakeups.add(.link(link.number), at: deadline)
    }

    /// Sees to it that the race is looked at when something of it is due.
    func watch(_ race: DialRace) {
        let deadline = deadline(of: race)
        guard deadline < race.wakesAt else { return }
        race.wakesAt = deadline
        wakeups.add(.race(race.number), at: deadline)
    }

    /// Sees to it that the address is looked at again when that is due.
    func watch(_ known: KnownAddress) { wakeups.add(.address(known.number), at: known.dueAt) }

    /// Sees to it that memory kept for large messages is given up when there are none any more.
    @inline(__always)
    func watchLargeChunks(now: Moment) {
        guard !watchesLargeChunks, !largeChunks.isEmpty else { return }
        watchesLargeChunks = true
        wakeups.add(.largeChunks, at: now + LargeChunks.keptWithoutUse)
    }

    /// How many deadlines are remembered.
    var wakeupCount: Int { wakeups.count }

    /// More than this many stale deadlines are not kept.
    private static let staleWakeups = 256

    /// Each link leaves its last deadline behind. That of few is no matter; a crowd that only comes and goes must not fill
    /// the memory with them.
    private func forgetStaleWakeups() {
        guard
            wakeups.count > Self.staleWakeups + 2
                * (links.count + peers.count + knownAddresses.count + races.count)
        else { return }
        wakeups.removeAll { wakeup, moment in
            switch wakeup {
            case .link(let number): links[number]?.wakesAt != moment
            case .peer(let id): peers[id]?.wakesAt != moment
            case .race(let number): races[number]?.wakesAt != moment
            default: false
            }
        }
    }

    /// When the link must be looked at next.
    func deadline(of link: Link) -> Moment {
        if link.isHeld { return .never }
        var deadline = link.machine.deadline
        if let conversation = link.conversation { deadline = min(deadline, conversation.acknowledgesAt) }
        if link.purpose == .unsettled { deadline = min(deadline, settlingDeadline(of: link)) }
        return deadline
    }

    /// An accepted pipe gets twice the handshake's time to say both who it is and what it wants.
    private func settlingDeadline(of link: Link) -> Moment {
        let handshake = Moment.Span(timings.handshake)
        return link.openedAt + handshake + handshake
    }

    private func linkTimeArrived(_ link: Link, now: Moment) {
        if link.isHeld { return }
        if let conversation = link.conversation, conversation.acknowledgesAt <= now {
            acknowledge(conversation, on: link)
        }
        if link.machine.timeArrived(now: now), let peer = link.peer, link === peer.link {
            output(.tell(.suspected(peer.id, true)))
        }
        markDirty(link)
        if let end = link.machine.end { return linkEnded(link, end, now: now) }
        if link.purpose == .unsettled, settlingDeadline(of: link) <= now {
            end(link, .tooSlow, because: .timedOut, now: now)
        }
    }

    /// When the peer must be looked at next.
    func deadline(of peer: PeerRecord) -> Moment {
        let deadline = min(
            peer.pairing?.deadline ?? .never, peer.conversation?.departure?.deadline ?? .never)
        return switch peer.phase {
        case .available(let invitation?): min(deadline, invitation.deadline)
        case .asking(let invitation): min(deadline, invitation.attempt.nextLook)
        case .connected(_, let carrier):
            min(deadline, carrier.movesAt, carrier.attempt?.nextLook ?? .never)
        case .reconnecting(_, let recovery):
            min(deadline, recovery.deadline, recovery.attempt?.nextLook ?? recovery.retryAt)
        case .unavailable, .available(nil), .settling, .parted: deadline
        }
    }

    /// Sees to it that the peer is looked at when its next deadline comes.
    func watch(_ peer: PeerRecord) {
        let deadline = deadline(of: peer)
        guard deadline < peer.wakesAt else { return }
        peer.wakesAt = deadline
        wakeups.add(.peer(peer.id), at: deadline)
    }

    private func peerTimeArrived(_ peer: PeerRecord, now: Moment) {
        if let pairing = peer.pairing, pairing.deadline <= now {
            endPairing(with: peer, .timedOut, saying: .timedOut)
        }
        if let departure = peer.conversation?.departure, departure.deadline <= now {
            return finishDeparture(of: peer, now: now)
        }
        switch peer.phase {
        case .available(let invitation?) where invitation.deadline <= now:
            endInvitation(of: peer, cause: .timedOut, code: .tooSlow)
        case .asking(let invitation): timeArrived(for: invitation.attempt, of: peer, now: now)
        case .connected(_, let carrier):
            if let attempt = carrier.attempt {
                timeArrived(for: attempt, of: peer, now: now)
            } else if carrier.movesAt <= now {
                move(peer, now: now)
            }
        case .reconnecting(_, let recovery):
            if recovery.deadline <= now {
                giveUpRecovery(of: peer, now: now)
            } else if let attempt = recovery.attempt {
                timeArrived(for: attempt, of: peer, now: now)
            } else if recovery.retryAt <= now {
                beginResuming(peer, now: now)
            }
        case .unavailable, .available, .settling, .parted: break
        }
    }

    private func timeArrived(for attempt: Attempt, of peer: PeerRecord, now: Moment) {
        if attempt.deadline <= now {
            fail(attemptOf: peer, with: .timedOut, now: now)
        } else if attempt.yieldsUntil <= now {
            attempt.yieldsUntil = .never
            attempt.race.routes = preferredRoutes(of: peer)
            run(attempt.race, now: now)
        } else if attempt.routeDeadline <= now {
            giveUpAsking(peer, now: now)
        }
    }

    // MARK: States

    /// Moves a peer to its next phase and tells the program. The moves are checked: one that is not in the table is a
    /// bug of this machine.
    func move(_ peer: PeerRecord, to next: PeerPhase, cause: NighError? = nil) {
        let last = peer.state
        precondition(last.mayMove(to: next.state), "no move from \(last) to \(next.state)")
        peer.phase = next
        output(.tell(.stateChanged(snapshot(of: peer), from: last, cause: cause)))
    }

    /// Makes a peer `available` or `unavailable`, by what is known of it now, and forgets one nobody needs.
    func settle(_ peer: PeerRecord) {
        switch peer.phase {
        case .parted: move(peer, to: peer.routes.isEmpty ? .unavailable : .available(nil))
        case .available(nil) where peer.routes.isEmpty: move(peer, to: .unavailable)
        case .unavailable where !peer.routes.isEmpty: move(peer, to: .available(nil))
        default: break
        }
        if peer.isIdle { peers[peer.id] = nil }
    }

    func snapshot(of peer: PeerRecord) -> Peer {
        peer.trustTold = security == .none ? nil : trust.trust(in: peer.id, called: peer.name)
        return Peer(
            id: peer.id, name: peer.name, info: peer.info, state: peer.state,
            routes: preferredRoutes(of: peer).map { Peer.Route(address: $0.address, quality: $0.quality) },
            transport: scheme(inUseWith: peer),
            trust: peer.trustTold)
    }

    /// The scheme of the transport that carries the conversation with the peer.
    func scheme(inUseWith peer: PeerRecord) -> String? { peer.link.map { transports[$0.transport].scheme } }

    /// The record of `id`, made if there is room for one more.
    func record(of id: PeerID, name: DisplayName) -> PeerRecord? {
        if let known = peers[id] { return known }
        guard peers.count < limits.knownPeers else { return nil }
        let record = PeerRecord(id: id, name: name)
        peers[id] = record
        return record
    }

    /// How many peers count against `limits.peers`.
    var engagedPeers: Int { peers.values.reduce(0) { $1.state.isEngaged ? $0 + 1 : $0 } }

    /// Counts by cause, and by peer with what their links know.
    func statisticsSnapshot() -> SessionStatistics {
        var result = statistics
        for peer in peers.values {
            if let conversation = peer.conversation {
                var counts = conversation.snapshot
                counts.link = peer.link?.machine.statistics
                counts.transport = scheme(inUseWith: peer)
                if let link = counts.link {
                    counts.unreliableSent += link.unreliableSent
                    counts.unreliableDropped += link.unreliableDropped
                }
                result.peers[peer.id] = counts
            } else if var last = peer.lastStatistics {
                last.bytesUnread = peer.unreadLeft
                result.peers[peer.id] = last
            }
        }
        return result
    }
}
