import NighCore
import NighMemory

// The checks on a world: from time to time while it runs, at rest, and after all sessions have closed.

extension World {
    // MARK: While it runs

    func scheduleChecks() {
        later(.milliseconds(400)) { [self] in
            for inhabitant in inhabitants { if let life = inhabitant.life { check(life) } }
            scheduleChecks()
        }
    }

    /// Checks the cause with which a conversation ended at one side. In worlds milder than a storm only some causes are
    /// allowed, and none if nobody leaves and nothing breaks.
    func conversationEnded(_ life: Life, _ other: Int, _ line: Life.Line, _ error: NighError) {
        let hasEndedThere = !toldEnded.insert(line.conversation).inserted
        if isMended {
            return life.found(.endurance, "the conversation with \(other) ended in a mended world: \(error)")
        }
        // A link may end with this cause because its preface was changed. But only links with authenticated prefaces
        // carry conversations.
        if plan.security != .none, case .protocolViolation = error.cause {
            return life.found(.authentic, "the conversation with \(other) ended: \(error)")
        }
        guard plan.kind != .storm else { return }
        switch error.cause {
        case .left: break
        // An acceptance may cross the end of the invitation that it answers, or of the one that gave way to that
        // invitation.
        case .peerLeft
        where hasEndedThere || life.withdrawn.contains(other)
            || line.receiver?.withdrawn.contains(life.index) ?? true:
            break
        // The link was cut or damaged during a goodbye, or after one side had accepted and before the other knew of it.
        case .unknownConversation, .linkLost, .insecure:
            guard !hasEndedThere, toldConnected[line.conversation] != 1 else { return }
            life.found(.endurance, "the conversation with \(other) ended: \(error)")
        default: life.found(.endurance, "the conversation with \(other) ended: \(error)")
        }
    }

    /// Checks the state of one session after the other, each time between two turns. Returns true from the first
    /// finding on.
    func findsInconsistency() -> Bool {
        turns &+= 1
        guard finding == nil else { return true }
        guard turns % Self.turnsPerLook == 0 else { return false }
        let next = turns / Self.turnsPerLook % inhabitants.count
        guard let life = inhabitants[next].life, !life.hasClosed, let session = life.session else {
            return false
        }
        let words = session.inconsistencies
        if !words.isEmpty { life.found(.consistency, words.joined(separator: "; ")) }
        return finding != nil
    }

    /// Compares the counts at the two ends of a conversation: no message is acknowledged before it has arrived, and
    /// none arrives that was not sent.
    private func compare(_ peer: SessionInspection.PeerView, of life: Life) {
        guard peer.conversation != nil, let other = index(of: peer.id),
            let partner = inhabitants[other].life, !partner.hasClosed,
            let theirs = partner.session?.inspection(of: id(life.index)),
            theirs.conversation == peer.conversation
        else { return }
        for (lane, (own, their)) in zip(Lane.allCases, zip(peer.lanes, theirs.lanes)) {
            if own.acknowledged > their.received || their.received > own.everSent {
                life.found(
                    .consistency,
                    "\(own.everSent) messages on \(lane) were sent to \(other), \(their.received) came, "
                        + "\(own.acknowledged) are acknowledged")
            }
        }
    }

    private func check(_ life: Life) {
        guard let session = life.session else { return }
        for (_, call) in life.calls.sorted(by: { $0.key < $1.key }) where call.deadline < loop.now {
            return life.found(.calls, "\(call.what) should have been answered by \(call.deadline)")
        }
        guard !life.hasClosed else { return }
        let inside = session.inspection
        let limits = life.owner.member.limits
        func expect(_ value: Int, atMost limit: Int, _ what: @autoclosure () -> String) {
            if value > limit {
                life.found(.bounds, "\(what()): \(value), where at most \(limit) are allowed")
            }
        }
        let message = WorldMessage.longest + 4_096
        var engaged = 0
        var invited = 0
        for peer in inside.peers {
            if peer.state == .connecting || peer.state == .connected || peer.state == .reconnecting {
                engaged += 1
            }
            if peer.isInvited { invited += 1 }
            expect(
                peer.bytesWaiting, atMost: 2 * (limits.sendBuffer + message),
                "bytes waiting for \(peer.id.short)")
            expect(
                peer.bytesUnread, atMost: 2 * (limits.receiveWindow + message + limits.frame),
                "bytes unread from \(peer.id.short)")
            expect(peer.carryingLinks, atMost: 1, "links that carry the conversation with \(peer.id.short)")
            expect(peer.routes.count, atMost: limits.routesPerPeer, "routes to \(peer.id.short)")
            if peer.bytesWaiting < 0 || peer.bytesUnread < 0 {
                life.found(.bounds, "\(peer.bytesWaiting) bytes wait, \(peer.bytesUnread) are unread")
            }
            compare(peer, of: life)
            let told = life.states.state(of: peer.id)
            if told != peer.state {
                life.found(.moves, "\(peer.id.short) is \(peer.state), told was \(told)")
            }
        }
        expect(engaged, atMost: limits.peers, "peers")
        expect(invited, atMost: limits.pendingInvitations, "pending invitations")
        expect(inside.peers.count, atMost: limits.knownPeers, "known peers")
        expect(inside.strangers, atMost: limits.unauthenticatedPipes, "pipes not authenticated")
        if inside.links != inside.connections {
            life.found(.leaks, "\(inside.links) links on \(inside.connections) pipes")
        }
        for peer in life.states.peers where !inside.peers.contains(where: { $0.id == peer }) {
            let told = life.states.state(of: peer)
            if told != .unavailable { life.found(.moves, "\(peer.short) is forgotten, told was \(told)") }
        }
    }

    // MARK: At rest

    /// Checks the world some time after all faults have ended: both ends agree, no state is intermediate, nothing is
    /// left over.
    func judgeRest() {
        judgePairing()
        let lives = inhabitants.compactMap(\.life)
        for life in lives where !life.hasClosed {
            guard let session = life.session else { continue }
            check(life)
            let inside = session.inspection
            var connected = 0
            for peer in inside.peers {
                if peer.state == .connected { connected += 1 }
                judge(peer, of: life)
            }
            if inside.links != connected || life.pipeCount != connected || openPipes(of: life) != connected {
                life.found(
                    .oneLink,
                    "\(connected) peers are connected by \(inside.links) links on \(life.pipeCount) pipes "
                        + "(underneath \(openPipes(of: life)))")
            }
            if inside.dials > 0 || inside.pings > 0 {
                life.found(.leaks, "\(inside.dials) dials, \(inside.pings) pings are left")
            }
            for call in life.calls.values { life.found(.calls, "\(call.what) is never answered") }
            judgeSight(life, inside)
            for (other, line) in life.lines where ledger.missing(in: line.stream) > 0 {
                life.found(.delivery, "\(ledger.missing(in: line.stream)) messages to \(other) never arrived")
            }
        }
    }

    private func openPipes(of life: Life) -> Int {
        [life.transport, life.spare].compactMap { $0 }.reduce(0) { sum, transport in
            let finding = transport.diagnose().first { $0.subject == "pipes" }?.finding
            return sum + (finding?.split(separator: " ").first.flatMap { Int($0) } ?? 0)
        }
    }

    /// Checks that every conversation uses the best transport over which one of the two sees the other. All transports
    /// have been open for a while.
    func judgeWays() {
        guard plan.hasSpareWays else { return }
        for life in awake {
            for peer in life.session?.inspection.peers ?? [] where peer.transport == Life.spareScheme {
                guard let other = index(of: peer.id), let partner = inhabitants[other].awake else { continue }
                let back = partner.session?.inspection(of: id(life.index))
                // An address that was entered by hand may be one where nobody can be reached any more.
                if partner.isAdvertising && peer.routes.contains(partner.address)
                    || life.isAdvertising && back?.routes.contains(life.address) ?? false
                {
                    life.found(.ways, "still talks with \(other) over the spare way")
                }
            }
        }
    }

    private func judge(_ peer: SessionInspection.PeerView, of life: Life) {
        guard let other = index(of: peer.id) else { return life.found(.ghosts, "knows \(peer.id.short)") }
        let partner = inhabitants[other].life.flatMap { $0.hasClosed ? nil : $0 }
        switch peer.state {
        case .connecting, .reconnecting, .disconnected:
            life.found(.agreement, "\(other) is still \(peer.state)")
        case .connected:
            guard let partner else { return life.found(.ghosts, "is connected to \(other), which is gone") }
            let theirs = partner.session?.inspection(of: id(life.index))
            guard let theirs, theirs.state == .connected, theirs.conversation == peer.conversation,
                peer.incarnation == partner.incarnation, theirs.incarnation == life.incarnation
            else {
                return life.found(
                    .agreement,
                    "is connected to \(other), which has it \(theirs.map { "\($0.state)" } ?? "unknown") and may think of "
                        + "another conversation or life")
            }
            if peer.carryingLinks != 1 || peer.linkCount != 1 {
                life.found(.oneLink, "has \(peer.linkCount) links to \(other), \(peer.carryingLinks) carry")
            }
        case .available:
            if partner == nil { life.found(.ghosts, "sees \(other), which is gone") }
        case .unavailable: break
        }
        if peer.isAsking || peer.isInvited || peer.isRecovering || peer.isLeaving {
            life.found(.agreement, "is not done with \(other), which is \(peer.state)")
        }
    }

    /// Checks that a browsing session sees every advertising session once and as it is now, and nobody else.
    private func judgeSight(_ life: Life, _ inside: SessionInspection) {
        guard !plan.isNarrow, !life.isClosing else { return }
        for inhabitant in inhabitants where inhabitant.index != life.index {
            let view = inside.peers.first { $0.id == id(inhabitant.index) }
            let visible = inhabitant.awake.flatMap { $0.isAdvertising && life.isBrowsing ? $0 : nil }
            guard let visible else {
                if let view, view.state == .available {
                    life.found(.ghosts, "sees \(inhabitant.index), which is not to be seen")
                }
                continue
            }
            guard let view, view.state == .available || view.state == .connected,
                visible.addresses.isSubset(of: view.routes)
            else {
                life.found(.ghosts, "does not see \(inhabitant.index), which is there")
                continue
            }
            if view.routes.contains(where: { !visible.addresses.contains($0) }) {
                life.found(.ghosts, "knows the ways \(view.routes) to \(visible.address)")
            }
        }
    }

    /// Checks that the world works: a session can connect to the peers that it sees, and every link carries messages
    /// and pings.
    func prove() {
        guard finding == nil else { return }
        note(.phase, "proof")
        isMended = true
        for life in awake where !plan.isNarrow {
            for inhabitant in inhabitants where life.states.state(of: id(inhabitant.index)) == .available {
                guard generator.chance(40) else { continue }
                invite(inhabitant.index, by: life, within: .seconds(8)) { error in
                    if let error { life.found(.agreement, "cannot connect in a mended world: \(error)") }
                }
            }
        }
        run(for: .seconds(10))
        for life in awake {
            for other in life.lines.keys.sorted() {
                send(life, to: other, length: generator.number(16...30_000))
                guard let session = life.session else { continue }
                let call = life.call("ping \(other) in the end", within: .seconds(4))
                session.ping(id(other)) { result in
                    switch result {
                    case .success: life.answered(call, "answered")
                    case .failure(let error):
                        life.found(.agreement, "a ping fails in a mended world: \(error)")
                    }
                }
            }
        }
        run(for: .seconds(6))
        guard finding == nil else { return }
        judgeRest()
    }

    /// Checks that the loop has little to do at rest: it only keeps links alive.
    func rest() {
        guard finding == nil else { return }
        note(.phase, "rest")
        let before = loop.workDone
        let seconds = 30
        run(for: .seconds(seconds))
        var allowed = 100
        for life in inhabitants.compactMap(\.life) {
            let asks =
                Moment.Span.seconds(Int64(seconds)).nanoseconds
                / Moment.Span(life.timings.askAfter).nanoseconds + 1
            // A ping and its pong: timer, flush, write, delayed by faults and perhaps split, read, flush, timer.
            allowed += life.pipeCount * Int(asks) * 40
            if life.readsLater { allowed += seconds * 10 * 3 }
        }
        let done = loop.workDone - before
        if done > allowed {
            found(
                Fault(.progress, "\(done) pieces of work in \(seconds) s of rest, where \(allowed) should do")
            )
        }
    }

    // MARK: At the end

    func judgeClosed() {
        for inhabitant in inhabitants {
            for life in inhabitant.lives {
                for call in life.calls.values { life.found(.calls, "\(call.what) is never answered") }
                for line in life.promised {
                    guard let receiver = line.receiver, !receiver.wasKilled || !receiver.readsLater else {
                        continue
                    }
                    let missing = ledger.missing(in: line.stream)
                    if missing > 0 {
                        life.found(
                            .delivery,
                            "left \(receiver.label) in good order, and \(missing) messages are missing")
                    }
                }
                if let session = life.session, !life.hasClosed {
                    life.found(.calls, "\(session.id.short) does not close")
                }
            }
        }
    }

    func judgeLeftovers() {
        guard finding == nil else { return }
        for inhabitant in inhabitants {
            for life in inhabitant.lives where life.remains != nil {
                life.found(.leaks, "its session is never let go")
            }
        }
        let pending = loop.pending
        if pending.work > 0 || pending.timers > 2 * inhabitants.count {
            found(Fault(.leaks, "\(pending.work) pieces of work and \(pending.timers) timers are left"))
        }
    }
}
