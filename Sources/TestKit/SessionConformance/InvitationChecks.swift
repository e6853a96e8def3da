import NighCore

// Invitations and their outcomes.

extension SessionConformance {
    static let invitationChecks = [
        ConformanceCheck(
            "invited", "the invited program sees the peer, the context and the transport, and decides"
        ) { testbed in
            let host = try testbed.startSession("Host", accepting: false)
            let caller = try testbed.startSession("Caller")
            let context = (0..<4_096).map { UInt8(truncatingIfNeeded: $0) }
            let outcome = try testbed.call(caller, host, context: context)
            try testbed.wait("the invitation") { !host.invitations.isEmpty }
            let invitation = host.invitations[0]
            try testbed.expect(invitation.peer.id == caller.id, "another peer invites")
            try testbed.expect(
                invitation.peer.name == "Caller", "the name is that of \(invitation.peer)")
            try testbed.expect(invitation.context == context, "the context is not the one that was sent")
            try testbed.expect(!invitation.transport.isEmpty, "the invitation names no transport")
            try testbed.expect(outcome.result == nil, "it was answered before the program answered")
            invitation.accept()
            try outcome.value()
            try testbed.waitFor(.connected, caller, host)
        },
        ConformanceCheck(
            "declined", "a program declines with a reason and a retry time, and can be invited again"
        ) { testbed in
            let host = try testbed.startSession("Host", accepting: false)
            let caller = try testbed.startSession("Caller")
            let outcome = try testbed.call(caller, host)
            try testbed.wait("the invitation") { !host.invitations.isEmpty }
            host.invitations[0].decline(because: "supper first", retryAfter: .seconds(600))
            let error = try outcome.error()
            try testbed.expect(
                error.cause == .declined("supper first", retryAfter: .seconds(600)),
                "it failed with: \(error)")
            let second = try testbed.call(caller, host)
            try testbed.wait("the second invitation") { host.invitations.count == 2 }
            host.invitations[1].accept()
            try second.value()
        },
        ConformanceCheck(
            "unanswered", "an invitation that nobody answers times out, not early, and ends at both sides"
        ) { testbed in
            let host = try testbed.startSession("Host", accepting: false)
            let caller = try testbed.startSession("Caller")
            let loop = caller.session.loop
            // On the loop, whose moment may be older than the clock while a turn lasts.
            let began = try testbed.run(on: loop) { loop.now }
            let error = try testbed.call(caller, host, timeout: .milliseconds(400)).error()
            try testbed.expect(error.cause == .timedOut, "it failed with: \(error)")
            try testbed.expect(loop.now - began >= .milliseconds(400), "it timed out early")
            try testbed.wait("the invitation ends at the other side") {
                host.endedInvitations.count == host.invitations.count
            }
            // A late answer must do no harm.
            for invitation in host.invitations { invitation.accept() }
            try testbed.waitQuietTime()
            try testbed.expect(host.state(of: caller.id) != .connected, "a late answer connected")
        },
        ConformanceCheck(
            "taken-back", "a cancelled invitation ends at the other side, with that cause"
        ) { testbed in
            let host = try testbed.startSession("Host", accepting: false)
            let caller = try testbed.startSession("Caller")
            let outcome = try testbed.call(caller, host)
            try testbed.wait("the invitation") { !host.invitations.isEmpty }
            caller.session.cancelInvitation(of: host.id)
            try testbed.expect(try outcome.error().cause == .cancelled, "it was not cancelled")
            try testbed.wait("its end is reported at the other side") { !host.endedInvitations.isEmpty }
            try testbed.expect(
                host.endedInvitations[0].cause == .cancelled,
                "it ended with: \(host.endedInvitations[0].cause)")
        },
        ConformanceCheck(
            "full", "a session at its peer limit refuses others with that reason, until a peer leaves",
            needs: ConformanceNeeds(ends: 3)
        ) { testbed in
            let host = try testbed.startSession("Host") { $0.limits.peers = 1 }
            let first = try testbed.startSession("First")
            let second = try testbed.startSession("Second")
            try testbed.connect(first, host)
            let error = try testbed.call(second, host).error()
            try testbed.expect(error.cause == .full, "it failed with: \(error)")
            try testbed.disconnect(first, from: host.id).value()
            try testbed.wait("the host is notified") { host.state(of: first.id) == .unavailable }
            try testbed.connect(second, host)
        },
        ConformanceCheck(
            "busy", "a session with too many pending invitations refuses others with that reason",
            needs: ConformanceNeeds(ends: 4)
        ) { testbed in
            let host = try testbed.startSession("Host", accepting: false) { $0.limits.pendingInvitations = 2 }
            let guests = try (1...3).map { try testbed.startSession("Guest \($0)") }
            let outcomes = try guests.map { try testbed.call($0, host) }
            try testbed.wait("two wait and one is refused") {
                host.invitations.count == 2 && outcomes.contains { $0.result != nil }
            }
            guard case .failure(let error)? = outcomes.compactMap(\.result).first else {
                throw Testbed.Failure(message: "nobody was refused")
            }
            try testbed.expect(error.cause == .busy, "it failed with: \(error)")
            for invitation in host.invitations { invitation.accept() }
            try testbed.wait("the other two are connected") {
                guests.filter { host.state(of: $0.id) == .connected }.count == 2
            }
        },
        ConformanceCheck(
            "both-invite",
            "two sessions that invite each other at once get one conversation on one link; both succeed"
        ) { testbed in
            let first = try testbed.startSession("First", role: .peer) {
                $0.timings.acknowledge = .milliseconds(5)
            }
            let second = try testbed.startSession("Second", role: .peer) {
                $0.timings.acknowledge = .milliseconds(5)
            }
            try testbed.waitFor(.available, first, second)
            var random = SeededGenerator(seed: testbed.rig.seed)
            for round in 0..<30 {
                let connections = [first, second].map { $0.events.count }
                // In half of the rounds the invitations are up to 3 ms apart, in the other half up to 0.1 ms.
                let spread: Int64 = round % 2 == 0 ? 3_000_000 : 100_000
                let delays = [first, second].map { _ in Int64.random(in: 0...spread, using: &random) }
                let outcomes = [
                    testbed.invite(first, second.id, after: delays[0]),
                    testbed.invite(second, first.id, after: delays[1]),
                ]
                for outcome in outcomes { try outcome.value() }
                try testbed.waitFor(.connected, first, second)
                try testbed.waitForLinks(1, at: first)
                try testbed.waitForLinks(1, at: second)
                let transfers = [
                    MessageTransfer(testbed, from: first, to: second, lengths: [16, 100], on: [.main]),
                    MessageTransfer(testbed, from: second, to: first, lengths: [16, 100], on: [.main]),
                ]
                try testbed.finish(transfers)
                for (probe, before) in zip([first, second], connections) {
                    let states = probe.events.dropFirst(before).compactMap { event -> PeerState? in
                        event.stateChange?.peer.state
                    }
                    try testbed.expect(
                        states == [.connecting, .connected], "in round \(round) the moves were \(states)")
                }
                try testbed.disconnect(
                    round % 3 == 0 ? first : second, from: round % 3 == 0 ? second.id : first.id
                )
                .value()
                try testbed.waitFor(.available, first, second)
                try testbed.waitForLinks(0, at: first)
                try testbed.waitForLinks(0, at: second)
            }
        },
    ]
}

extension Testbed {
    /// Lets `caller` invite a peer after `delay` nanoseconds.
    fileprivate func invite(_ caller: SessionProbe, _ peer: PeerID, after delay: Int64) -> PendingResult<
        PeerID
    > {
        let outcome = PendingResult<PeerID>("the invitation by session \(caller.number)", on: self)
        let timeout = rig.timeout * 10
        let session = caller.session
        session.loop.execute {
            session.loop.schedule(at: session.loop.now + Moment.Span(nanoseconds: delay)) {
                session.invite(peer, timeout: timeout) { outcome.complete(with: $0) }
            }
        }
        return outcome
    }
}
