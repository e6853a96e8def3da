import NighCore
import NighTestKit
import NighMemory

// The checks on a world: from time to time while it runs, at rest, and after all sessions have closed.

extension World {
    // MARK: While it runs

    func scheduleChecks() {
        schedule(after: .milliseconds(400)) { [self] in
            for worldPeer in peers { if let run = worldPeer.currentRun { check(run) } }
            scheduleChecks()
        }
    }

    /// Checks the cause with which a conversation ended at one side. In worlds milder than a storm only some causes are
    /// allowed, and none if nobody leaves and nothing breaks.
    func conversationEnded(
        _ run: SessionRun, _ other: Int, _ stream: SessionRun.OutgoingStream, _ error: NighError
    ) {
        let hasEndedThere = !endedConversations.insert(stream.conversation).inserted
        if isFaultFree {
            return run.report(.endurance, "the conversation with \(other) ended without any fault: \(error)")
        }
        // A link may end with this cause because its preface was changed. But only links with authenticated prefaces
        // carry conversations.
        if plan.security != .none, case .protocolViolation = error.cause {
            return run.report(.authentic, "the conversation with \(other) ended: \(error)")
        }
        guard plan.kind != .storm else { return }
        switch error.cause {
        case .left: break
        // An acceptance may cross the end of the invitation that it answers, or of the one that gave way to that
        // invitation.
        case .peerLeft
        where hasEndedThere || run.withdrawnFrom.contains(other)
            || stream.receiver?.withdrawnFrom.contains(run.index) ?? true:
            break
        // The link was cut or damaged during a goodbye, or after one side had accepted and before the other knew of it.
        case .unknownConversation, .linkLost, .insecure:
            guard !hasEndedThere, connectedEnds[stream.conversation] != 1 else { return }
            run.report(.endurance, "the conversation with \(other) ended: \(error)")
        default: run.report(.endurance, "the conversation with \(other) ended: \(error)")
        }
    }

    /// Checks the state of one session after the other, each time between two turns. Returns true from the first
    /// finding on.
    func findsInconsistency() -> Bool {
        turns &+= 1
        guard finding == nil else { return true }
        guard turns % Self.turnsPerCheck == 0 else { return false }
        let next = turns / Self.turnsPerCheck % peers.count
        guard let run = peers[next].currentRun, !run.hasClosed, let session = run.session else {
            return false
        }
        let inconsistencies = session.inconsistencies
        if !inconsistencies.isEmpty { run.report(.consistency, inconsistencies.joined(separator: "; ")) }
        return finding != nil
    }

    /// Compares the counts at the two ends of a conversation: no message is acknowledged before it has arrived, and
    /// none arrives that was not sent.
    private func compare(_ peer: SessionInspection.PeerView, of run: SessionRun) {
        guard peer.conversation != nil, let other = index(of: peer.id),
            let partner = peers[other].currentRun, !partner.hasClosed,
            let theirs = partner.session?.inspection(of: id(run.index)),
            theirs.conversation == peer.conversation
        else { return }
        for (lane, (own, their)) in zip(Lane.allCases, zip(peer.lanes, theirs.lanes)) {
            if own.acknowledged > their.received || their.received > own.everSent {
                run.report(
                    .consistency,
                    "\(own.everSent) messages on \(lane) were sent to \(other), \(their.received) arrived, "
                        + "\(own.acknowledged) are acknowledged")
            }
        }
    }

    private func check(_ run: SessionRun) {
        guard let session = run.session else { return }
        for (_, call) in run.calls.sorted(by: { $0.key < $1.key }) where call.deadline < loop.now {
            return run.report(.calls, "\(call.what) should have been answered by \(call.deadline)")
        }
        checkQuestions(run)
        guard !run.hasClosed else { return }
        let inside = session.inspection
        let limits = run.owner.member.limits
        func expect(_ value: Int, atMost limit: Int, _ what: @autoclosure () -> String) {
            if value > limit {
                run.report(.bounds, "\(what()): \(value), where at most \(limit) are allowed")
            }
        }
        let message = NumberedMessage.longest + 4_096
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
                run.report(.bounds, "\(peer.bytesWaiting) bytes wait, \(peer.bytesUnread) are unread")
            }
            compare(peer, of: run)
            let reported = run.states.state(of: peer.id)
            if reported != peer.state {
                run.report(.moves, "\(peer.id.short) is \(peer.state), reported was \(reported)")
            }
        }
        expect(engaged, atMost: limits.peers, "peers")
        expect(invited, atMost: limits.pendingInvitations, "pending invitations")
        expect(inside.peers.count, atMost: limits.knownPeers, "known peers")
        expect(inside.strangers, atMost: limits.unauthenticatedPipes, "pipes not authenticated")
        if inside.links != inside.connections {
            run.report(.leaks, "\(inside.links) links on \(inside.connections) pipes")
        }
        for peer in run.states.peers where !inside.peers.contains(where: { $0.id == peer }) {
            let reported = run.states.state(of: peer)
            if reported != .unavailable {
                run.report(.moves, "\(peer.short) is forgotten, reported was \(reported)")
            }
        }
    }

    // MARK: At rest

    /// Checks the world some time after all faults have ended: both ends agree, no state is intermediate, nothing is
    /// left over.
    func checkAtRest() {
        checkPairing()
        checkStreamsAtRest()
        checkDeliveriesAtRest()
        checkGroupsAtRest()
        checkChannelsAtRest()
        checkQuestionsAtRest()
        let runs = peers.compactMap(\.currentRun)
        for run in runs where !run.hasClosed {
            guard let session = run.session else { continue }
            check(run)
            let inside = session.inspection
            var connected = 0
            for peer in inside.peers {
                if peer.state == .connected { connected += 1 }
                check(peer, of: run)
            }
            if inside.links != connected || run.pipeCount != connected || openPipes(of: run) != connected {
                run.report(
                    .oneLink,
                    "\(connected) peers are connected by \(inside.links) links on \(run.pipeCount) pipes "
                        + "(underneath \(openPipes(of: run)))")
            }
            if inside.dials > 0 || inside.pings > 0 {
                run.report(.leaks, "\(inside.dials) dials, \(inside.pings) pings are left")
            }
            for call in run.calls.values { run.report(.calls, "\(call.what) is never answered") }
            checkDiscovery(run, inside)
            for (other, stream) in run.streams where ledger.missing(in: stream.number) > 0 {
                run.report(
                    .delivery, "\(ledger.missing(in: stream.number)) messages to \(other) never arrived")
            }
        }
    }

    private func openPipes(of run: SessionRun) -> Int {
        run.host.transports.reduce(0) { sum, transport in
            let finding = transport.diagnose().first { $0.subject == "pipes" }?.finding
            return sum + (finding?.split(separator: " ").first.flatMap { Int($0) } ?? 0)
        }
    }

    /// Checks that every conversation uses the best transport over which one of the two sees the other. All transports
    /// have been open for a while.
    func checkTransports() {
        guard plan.hasSpareTransports else { return }
        for run in activeRuns {
            for peer in run.session?.inspection.peers ?? [] where peer.transport == SessionRun.spareScheme {
                guard let other = index(of: peer.id), let partner = peers[other].activeRun else { continue }
                let back = partner.session?.inspection(of: id(run.index))
                // An address that was entered by hand may be one where nobody can be reached any more.
                if partner.isAdvertising && peer.routes.contains(partner.address)
                    || run.isAdvertising && back?.routes.contains(run.address) ?? false
                {
                    run.report(.ways, "still uses the spare transport to \(other)")
                }
            }
        }
    }

    private func check(_ peer: SessionInspection.PeerView, of run: SessionRun) {
        guard let other = index(of: peer.id) else { return run.report(.ghosts, "knows \(peer.id.short)") }
        let partner = peers[other].currentRun.flatMap { $0.hasClosed ? nil : $0 }
        switch peer.state {
        case .connecting, .reconnecting, .disconnected:
            run.report(.agreement, "\(other) is still \(peer.state)")
        case .connected:
            guard let partner else { return run.report(.ghosts, "is connected to \(other), which is gone") }
            let theirs = partner.session?.inspection(of: id(run.index))
            guard let theirs, theirs.state == .connected, theirs.conversation == peer.conversation,
                peer.incarnation == partner.incarnation, theirs.incarnation == run.incarnation
            else {
                return run.report(
                    .agreement,
                    "is connected to \(other), for which it is \(theirs.map { "\($0.state)" } ?? "unknown"), "
                        + "perhaps in another conversation or run")
            }
            if peer.carryingLinks != 1 || peer.linkCount != 1 {
                run.report(
                    .oneLink,
                    "has \(peer.linkCount) links to \(other), \(peer.carryingLinks) carry the conversation")
            }
        case .available:
            if partner == nil { run.report(.ghosts, "sees \(other), which is gone") }
        case .unavailable: break
        }
        if peer.isRequesting || peer.isInvited || peer.isRecovering || peer.isLeaving {
            run.report(.agreement, "still has work for \(other), which is \(peer.state)")
        }
    }

    /// Checks that a browsing session sees every advertising session once and as it is now, and nobody else.
    private func checkDiscovery(_ run: SessionRun, _ inside: SessionInspection) {
        guard !plan.isNarrow, !run.isClosing else { return }
        for worldPeer in peers where worldPeer.index != run.index {
            let view = inside.peers.first { $0.id == id(worldPeer.index) }
            let visible = worldPeer.activeRun.flatMap { $0.isAdvertising && run.isBrowsing ? $0 : nil }
            guard let visible else {
                if let view, view.state == .available {
                    run.report(.ghosts, "sees \(worldPeer.index), which is not visible")
                }
                continue
            }
            guard let view, view.state == .available || view.state == .connected,
                visible.addresses.isSubset(of: view.routes)
            else {
                run.report(.ghosts, "does not see \(worldPeer.index), which is visible")
                continue
            }
            if view.routes.contains(where: { !visible.addresses.contains($0) }) {
                run.report(.ghosts, "knows the routes \(view.routes) to \(visible.address)")
            }
        }
    }

    /// Checks that the world works: a session can connect to the peers that it sees, and every link carries messages
    /// and pings.
    func checkThatItWorks() {
        guard finding == nil else { return }
        note(.phase, "proof")
        isFaultFree = true
        for run in activeRuns where !plan.isNarrow {
            for worldPeer in peers where run.states.state(of: id(worldPeer.index)) == .available {
                guard generator.chance(40) else { continue }
                invite(worldPeer.index, by: run, within: .seconds(8)) { error in
                    if let error { run.report(.agreement, "cannot connect without any fault: \(error)") }
                }
            }
        }
        advance(by: .seconds(10))
        proveChannels()
        proveQuestions()
        for run in activeRuns {
            for other in run.streams.keys.sorted() {
                send(run, to: other, length: generator.number(16...30_000))
                guard let session = run.session else { continue }
                let call = run.call("ping \(other) at the end", within: .seconds(4))
                session.ping(id(other)) { result in
                    switch result {
                    case .success: run.recordAnswer(to: call, "answered")
                    case .failure(let error):
                        run.report(.agreement, "a ping fails without any fault: \(error)")
                    }
                }
            }
        }
        advance(by: .seconds(6))
        guard finding == nil else { return }
        checkAtRest()
    }

    /// Checks that the loop has little to do at rest: it only keeps links alive.
    func checkIdleWork() {
        guard finding == nil else { return }
        note(.phase, "rest")
        let before = loop.workDone
        let seconds = 30
        advance(by: .seconds(seconds))
        var allowed = 100
        for run in peers.compactMap(\.currentRun) {
            let asks =
                Moment.Span.seconds(Int64(seconds)).nanoseconds
                / Moment.Span(run.timings.pingAfter).nanoseconds + 1
            // A ping and its pong: timer, flush, write, delayed by faults and perhaps split, read, flush, timer.
            allowed += run.pipeCount * Int(asks) * 40
            if run.readsLater { allowed += seconds * 10 * 3 }
        }
        let done = loop.workDone - before
        if done > allowed {
            report(
                Violation(.progress, "\(done) pieces of work in \(seconds) s of rest, more than \(allowed)")
            )
        }
    }

    // MARK: At the end

    func checkAfterClose() {
        for worldPeer in peers {
            for run in worldPeer.runs {
                for call in run.calls.values { run.report(.calls, "\(call.what) is never answered") }
                for stream in run.confirmedStreams {
                    guard let receiver = stream.receiver, !receiver.wasKilled || !receiver.readsLater else {
                        continue
                    }
                    let missing = ledger.missing(in: stream.number)
                    if missing > 0 {
                        run.report(
                            .delivery,
                            "left \(receiver.label) cleanly, and \(missing) messages are missing")
                    }
                }
                if let session = run.session, !run.hasClosed {
                    run.report(.calls, "\(session.id.short) does not close")
                }
            }
        }
    }

    func checkForLeaks() {
        guard finding == nil else { return }
        for worldPeer in peers {
            for run in worldPeer.runs where run.weakSession != nil {
                run.report(.leaks, "its session is never released")
            }
        }
        let pending = loop.pending
        if pending.work > 0 || pending.timers > 2 * peers.count {
            report(Violation(.leaks, "\(pending.work) pieces of work and \(pending.timers) timers are left"))
        }
    }
}
