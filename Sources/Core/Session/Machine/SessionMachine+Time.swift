// When the machine looks at links, peers and addresses again, and what it does when their time has come.

extension SessionMachine {
    /// The subject of a deadline.
    enum Wakeup {
        case link(UInt64)
        case peer(PeerID)
        case address(UInt64)
        case race(UInt64)
        case largeChunks
    }

    /// Handles all deadlines that have come.
    mutating func timeArrived(now: Moment) {
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
                if largeChunks.releaseUnused() { watchLargeChunks(now: now) }
            }
        }
    }

    /// Schedules the next look at the link, at its deadline.
    @inline(__always)
    mutating func watch(_ link: Link) {
        let deadline = deadline(of: link)
        guard deadline < link.wakesAt else { return }
        link.wakesAt = deadline
        wakeups.add(.link(link.number), at: deadline)
    }

    /// Schedules the next look at the race, when something of it is due.
    mutating func watch(_ race: DialRace) {
        let deadline = deadline(of: race)
        guard deadline < race.wakesAt else { return }
        race.wakesAt = deadline
        wakeups.add(.race(race.number), at: deadline)
    }

    /// Schedules the next look at the address, when it is due.
    mutating func watch(_ known: KnownAddress) { wakeups.add(.address(known.number), at: known.dueAt) }

    /// Schedules a check that frees the memory kept for large messages once it is unused.
    @inline(__always)
    mutating func watchLargeChunks(now: Moment) {
        guard !watchesLargeChunks, !largeChunks.isEmpty else { return }
        watchesLargeChunks = true
        wakeups.add(.largeChunks, at: now + LargeChunks.idleLifetime)
    }

    /// The number of deadlines that are remembered.
    var wakeupCount: Int { wakeups.count }

    /// The number of stale deadlines above which they are removed.
    private static let staleWakeups = 256

    /// Removes stale deadlines. Each link leaves its last deadline behind. A few do not matter, but many links that
    /// only come and go must not fill the memory with them.
    mutating func forgetStaleWakeups() {
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

    /// Returns when the link must be looked at next.
    func deadline(of link: Link) -> Moment {
        // Packets travel also while the link is held.
        let pathDeadline = link.datagrams?.deadline ?? .never
        if link.isHeld { return pathDeadline }
        var deadline = min(link.machine.deadline, pathDeadline)
        if let conversation = link.conversation { deadline = min(deadline, conversation.acknowledgesAt) }
        if link.purpose == .unsettled { deadline = min(deadline, settlingDeadline(of: link)) }
        return deadline
    }

    /// Returns when an unsettled link is closed. An accepted pipe has twice the handshake timeout to name its peer and
    /// to bring a request.
    private func settlingDeadline(of link: Link) -> Moment {
        let handshake = Moment.Span(timings.handshake)
        return link.openedAt + handshake + handshake
    }

    private mutating func linkTimeArrived(_ link: Link, now: Moment) {
        link.datagrams?.timeArrived(now: now)
        processPath(of: link)
        if link.isHeld { return }
        if let conversation = link.conversation, conversation.acknowledgesAt <= now {
            acknowledge(conversation, on: link)
        }
        if link.machine.timeArrived(now: now), let peer = link.peer, link === peer.link {
            link.conversation?.isReportedUnresponsive = true
            report(.peerUnresponsive(snapshot(of: peer)))
        }
        markDirty(link)
        if let end = link.machine.end { return linkEnded(link, end, now: now) }
        if link.purpose == .unsettled, settlingDeadline(of: link) <= now {
            end(link, .tooSlow, because: .timedOut, now: now)
        }
    }

    /// Returns when the peer must be looked at next.
    func deadline(of peer: PeerRecord) -> Moment {
        let deadline = min(
            peer.pairing.map { self.deadline(of: $0) } ?? .never,
            peer.conversation?.departure?.deadline ?? .never)
        return switch peer.phase {
        case .available(let invitation?): min(deadline, invitation.deadline)
        case .inviting(let invitation): min(deadline, invitation.nextDeadline)
        case .connected(_, let carryingLink):
            min(deadline, carryingLink.movesAt, carryingLink.attempt?.nextDeadline ?? .never)
        case .reconnecting(_, let recovery):
            min(deadline, recovery.deadline, recovery.attempt?.nextDeadline ?? recovery.retryAt)
        case .unavailable, .available(nil), .settling, .ended: deadline
        }
    }

    /// Schedules the next look at the peer, at its deadline.
    mutating func watch(_ peer: PeerRecord) {
        let deadline = deadline(of: peer)
        guard deadline < peer.wakesAt else { return }
        peer.wakesAt = deadline
        wakeups.add(.peer(peer.id), at: deadline)
    }

    private mutating func peerTimeArrived(_ peer: PeerRecord, now: Moment) {
        if peer.pairing != nil { timeArrived(forPairingWith: peer, now: now) }
        if let departure = peer.conversation?.departure, departure.deadline <= now {
            return finishDeparture(of: peer, now: now)
        }
        switch peer.phase {
        case .available(let invitation?) where invitation.deadline <= now:
            endInvitation(of: peer, cause: .timedOut, code: .tooSlow)
        case .inviting(let invitation):
            if invitation.attempt.deadline > now { answerLateCalls(of: invitation, to: peer, now: now) }
            timeArrived(for: invitation.attempt, of: peer, now: now)
        case .connected(_, let carryingLink):
            if let attempt = carryingLink.attempt {
                timeArrived(for: attempt, of: peer, now: now)
            } else if carryingLink.movesAt <= now {
                moveConversation(of: peer, now: now)
            }
        case .reconnecting(_, let recovery):
            if recovery.deadline <= now {
                giveUpRecovery(of: peer, now: now)
            } else if let attempt = recovery.attempt {
                timeArrived(for: attempt, of: peer, now: now)
            } else if recovery.retryAt <= now {
                beginResuming(peer, now: now)
            }
        case .unavailable, .available, .settling, .ended: break
        }
    }

    /// Answers the calls whose time is over, while others still wait for the same invitation.
    private mutating func answerLateCalls(of invitation: OutgoingInvitation, to peer: PeerRecord, now: Moment)
    {
        guard invitation.calls.contains(where: { $0.deadline <= now }) else { return }
        for call in invitation.removeCalls(where: { $0.deadline <= now }) {
            refuse(call.token, .timedOut, peer: peer.label)
        }
    }

    private mutating func timeArrived(for attempt: Attempt, of peer: PeerRecord, now: Moment) {
        if attempt.deadline <= now {
            fail(attemptOf: peer, with: .timedOut, now: now)
        } else if attempt.waitsForPeerUntil <= now {
            attempt.waitsForPeerUntil = .never
            attempt.race.routes = preferredRoutes(of: peer)
            run(attempt.race, now: now)
        } else if attempt.routeDeadline <= now {
            giveUpRequest(peer, now: now)
        }
    }
}
