// Checks that the machine's state is consistent. No session calls this; tests that try to break a session check it
// after each step.

extension SessionMachine {
    /// The contradictions in the state between two inputs, in words. Always empty, unless the machine has a bug.
    var inconsistencies: [String] {
        var found: [String] = []
        for (id, peer) in peers { check(peer, id: id, &found) }
        for (number, link) in links.sorted { check(link, number: number, &found) }
        for (number, race) in dials.sorted
        where !race.candidates.contains(where: { $0.dial.number == number }) {
            found.append("a dial in no race")
        }
        for (number, race) in races.sorted { check(race, number: number, &found) }
        for known in knownAddresses {
            if deadline > known.dueAt { found.append("\(known.address) is looked at too late") }
            let isLookedAfter = known.race.map { races[$0.number] === $0 } ?? (known.dueAt < .never)
            if !isLookedAfter { found.append("\(known.address) is forgotten") }
        }
        check(knownAddresses.count, atMost: limits.knownAddresses, "addresses known", &found)
        for (number, ping) in pings where ping.link.purpose != .carrying {
            found.append("ping \(number) waits on a link that carries no conversation")
        }
        check(peers.count, atMost: limits.knownPeers, "peers known", &found)
        check(engagedPeers, atMost: limits.peers, "peers engaged", &found)
        check(census.invitations, atMost: limits.pendingInvitations, "invitations pending", &found)
        let counts = [
            (census.engaged, peers.values.count { $0.state.isEngaged }, "peers engaged"),
            (census.conversing, peers.values.count { $0.conversation != nil }, "conversations"),
            (census.invitations, peers.values.count { $0.invitation != nil }, "invitations"),
            (census.strangers, links.values.count(where: \.isStranger), "strangers"),
        ]
        for (counted, actual, what) in counts where counted != actual {
            found.append("\(counted) \(what) counted, there are \(actual)")
        }
        return found
    }

    /// Returns whether a look scheduled at `wakesAt` comes in time for `due`, and the machine's own deadline in time
    /// for it.
    private func isScheduled(at wakesAt: Moment, for due: Moment) -> Bool {
        wakesAt <= due && deadline <= wakesAt
    }

    private func check(_ count: Int, atMost limit: Int, _ what: String, _ found: inout [String]) {
        if count > limit { found.append("\(count) \(what), the limit is \(limit)") }
    }

    private func check(_ peer: PeerRecord, id: PeerID, _ found: inout [String]) {
        func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
            if !holds { found.append("\(peer.state) peer: \(what())") }
        }
        expect(peer.id == id, "under another's id")
        expect(isScheduled(at: peer.wakesAt, for: deadline(of: peer)), "its wake-up comes after its deadline")
        expect(!peer.isIdle, "kept without need")
        expect(peer.routesBesidesIntroduced <= limits.routesPerPeer, "too many routes")
        expect(peer.linkCount == links.values.count { $0.peer === peer }, "links miscounted")
        if let conversation = peer.conversation, !conversation.port.hasStaged {
            expect(conversation.isConsistent, "messages miscounted")
        }
        switch peer.phase {
        case .connected(let conversation, let carryingLink):
            let link = carryingLink.link
            expect(links[link.number] === link, "carried by a link that is gone")
            expect(link.conversation === conversation, "carried by another's link")
            expect(conversation.link === link, "sends on another link")
            expect(link.purpose == .carrying, "carried by a link that does not carry")
            let isMoving = carryingLink.attempt?.requestSent ?? false
            expect(link.isHeld == isMoving, "held: \(!isMoving)")
        case .reconnecting(let conversation, _):
            expect(conversation.link == nil, "sends on a link that is gone")
        case .available(let invitation?):
            expect(links[invitation.link.number] === invitation.link, "invited by a link that is gone")
            expect(invitation.link.purpose == .invited, "invited by a link for something else")
        case .available(nil): expect(!peer.routes.isEmpty, "without a route")
        case .unavailable: expect(peer.routes.isEmpty, "routes: \(peer.routes.count)")
        case .settling, .ended: expect(false, "at rest")
        case .inviting(let invitation):
            let longest = invitation.calls.map(\.deadline).max()
            expect(longest == invitation.attempt.deadline, "asks for another time than its calls wait")
        }
        if let link = peer.attempt?.link {
            expect(links[link.number] === link && link.purpose == .requesting, "asks on no link")
        }
    }

    private func check(_ race: DialRace, number: UInt64, _ found: inout [String]) {
        func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
            if !holds { found.append("race for \(race.purpose): \(what())") }
        }
        expect(race.number == number, "under another's number")
        expect(isScheduled(at: race.wakesAt, for: deadline(of: race)), "its wake-up comes after its deadline")
        expect(!race.isIdle, "nothing is under way")
        expect(race.candidates.count <= Self.dialsAtOnce, "too many dials")
        switch race.purpose {
        case .peer(let peer): expect(peers[peer]?.attempt?.race === race, "no attempt uses it")
        case .pairing(let peer): expect(peers[peer]?.pairing?.race === race, "no pairing uses it")
        case .knownAddress(let known): expect(known.race === race, "no known address uses it")
        case .address: break
        }
        for candidate in race.candidates {
            expect(dials[candidate.dial.number] === race, "a dial that is forgotten")
            guard let link = candidate.link else { continue }
            expect(links[link.number] === link && link.purpose == .unsettled, "a link for something else")
        }
    }

    private func check(_ link: Link, number: UInt64, _ found: inout [String]) {
        func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
            if !holds { found.append("\(link.purpose) link: \(what())") }
        }
        expect(link.number == number, "under another's number")
        expect(isScheduled(at: link.wakesAt, for: deadline(of: link)), "its wake-up comes after its deadline")
        expect(link.machine.end == nil, "is over and kept")
        expect(link.peer.map { peers[$0.id] === $0 } ?? true, "of a forgotten peer")
        expect((link.conversation != nil) == (link.purpose == .carrying), "carries without a conversation")
        switch link.purpose {
        case .carrying: expect(link.peer?.link === link, "carries what another carries")
        case .requesting: expect(link.peer?.attempt?.link === link, "has sent a request without an attempt")
        case .invited: expect(link.peer?.invitation?.link === link, "brought an invitation that is gone")
        case .pairing: expect(link.peer?.pairing?.link === link, "for a pairing that is over")
        case .unsettled: break
        case .finished: expect(false, "kept")
        }
    }
}
