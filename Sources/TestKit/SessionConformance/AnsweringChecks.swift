import NighCore

// Invitations and their outcomes.

extension SessionConformance {
    static let answeringChecks = [
        ConformanceCheck(
            "invited", "the invited program sees who asks, with which words, by which transport, and decides"
        ) { bench in
            let host = try bench.join("Host", accepting: false)
            let caller = try bench.join("Caller")
            let context = (0..<4_096).map { UInt8(truncatingIfNeeded: $0) }
            let answer = try bench.call(caller, host, context: context)
            try bench.wait("the invitation") { !host.invitations.isEmpty }
            let invitation = host.invitations[0]
            try bench.expect(invitation.peer.id == caller.id, "somebody else asks")
            try bench.expect(
                invitation.peer.name.description == "Caller", "by the name of \(invitation.peer)")
            try bench.expect(invitation.context == context, "the words are others")
            try bench.expect(!invitation.transport.isEmpty, "it came by no transport")
            try bench.expect(answer.result == nil, "it was answered before the program has")
            host.session.accept(invitation)
            try answer.value()
            try bench.waitFor(.connected, caller, host)
        },
        ConformanceCheck(
            "declined", "who declines says why and for how long, and can be asked again"
        ) { bench in
            let host = try bench.join("Host", accepting: false)
            let caller = try bench.join("Caller")
            let answer = try bench.call(caller, host)
            try bench.wait("the invitation") { !host.invitations.isEmpty }
            host.session.decline(host.invitations[0], words: "supper first", retryAfter: .seconds(600))
            let error = try answer.error()
            try bench.expect(
                error.cause == .declined("supper first", retryAfter: .seconds(600)),
                "it failed with: \(error)")
            let second = try bench.call(caller, host)
            try bench.wait("the second invitation") { host.invitations.count == 2 }
            host.session.accept(host.invitations[1])
            try second.value()
        },
        ConformanceCheck(
            "unanswered", "an invitation nobody answers times out, not early, and ends at both sides"
        ) { bench in
            let host = try bench.join("Host", accepting: false)
            let caller = try bench.join("Caller")
            let loop = caller.session.loop
            let began = loop.now
            let error = try bench.call(caller, host, timeout: .milliseconds(400)).error()
            try bench.expect(error.cause == .timedOut, "it failed with: \(error)")
            try bench.expect(loop.now - began >= .milliseconds(400), "it timed out early")
            try bench.wait("the invitation ends over there") {
                host.endedInvitations.count == host.invitations.count
            }
            // A late answer must do no harm.
            for invitation in host.invitations { host.session.accept(invitation) }
            try bench.settle()
            try bench.expect(host.state(of: caller.id) != .connected, "a late answer connected")
        },
        ConformanceCheck(
            "taken-back", "an invitation that is taken back ends over there, with that cause"
        ) { bench in
            let host = try bench.join("Host", accepting: false)
            let caller = try bench.join("Caller")
            let answer = try bench.call(caller, host)
            try bench.wait("the invitation") { !host.invitations.isEmpty }
            caller.session.cancelInvitation(of: host.id)
            try bench.expect(try answer.error().cause == .cancelled, "it was not cancelled")
            try bench.wait("its end is told over there") { !host.endedInvitations.isEmpty }
            try bench.expect(
                host.endedInvitations[0].cause == .cancelled,
                "it ended with: \(host.endedInvitations[0].cause)")
        },
        ConformanceCheck(
            "full", "a session that has all the peers it takes refuses with that reason, until one leaves",
            needs: ConformanceNeeds(ends: 3)
        ) { bench in
            let host = try bench.join("Host") { $0.limits.peers = 1 }
            let first = try bench.join("First")
            let second = try bench.join("Second")
            try bench.connect(first, host)
            let error = try bench.call(second, host).error()
            try bench.expect(error.cause == .full, "it failed with: \(error)")
            try bench.leave(first, host.id).value()
            try bench.wait("the host is told") { host.state(of: first.id) == .unavailable }
            try bench.connect(second, host)
        },
        ConformanceCheck(
            "busy", "a session with too many invitations waiting refuses with that reason",
            needs: ConformanceNeeds(ends: 4)
        ) { bench in
            let host = try bench.join("Host", accepting: false) { $0.limits.pendingInvitations = 2 }
            let guests = try (1...3).map { try bench.join("Guest \($0)") }
            let answers = try guests.map { try bench.call($0, host) }
            try bench.wait("two wait and one is refused") {
                host.invitations.count == 2 && answers.contains { $0.result != nil }
            }
            guard case .failure(let error)? = answers.compactMap(\.result).first else {
                throw Bench.Failure(words: "nobody was refused")
            }
            try bench.expect(error.cause == .busy, "it failed with: \(error)")
            for invitation in host.invitations { host.session.accept(invitation) }
            try bench.wait("the other two are connected") {
                guests.filter { host.state(of: $0.id) == .connected }.count == 2
            }
        },
        ConformanceCheck(
            "both-invite",
            "two that invite each other at once get one conversation on one link, and both invitations succeed"
        ) { bench in
            let first = try bench.join("First", role: .peer) { $0.timings.acknowledge = .milliseconds(5) }
            let second = try bench.join("Second", role: .peer) { $0.timings.acknowledge = .milliseconds(5) }
            try bench.waitFor(.available, first, second)
            var random = SeededGenerator(seed: bench.rig.seed)
            for round in 0..<30 {
                let connections = [first, second].map { $0.events.count }
                // In half of the rounds the invitations are up to 3 ms apart, in the other half up to 0.1 ms.
                let spread: Int64 = round % 2 == 0 ? 3_000_000 : 100_000
                let delays = [first, second].map { _ in Int64.random(in: 0...spread, using: &random) }
                let answers = [
                    bench.invite(first, second.id, after: delays[0]),
                    bench.invite(second, first.id, after: delays[1]),
                ]
                for answer in answers { try answer.value() }
                try bench.waitFor(.connected, first, second)
                try bench.waitForLinks(1, at: first)
                try bench.waitForLinks(1, at: second)
                let talks = [
                    Talk(bench, from: first, to: second, lengths: [16, 100], on: [.main]),
                    Talk(bench, from: second, to: first, lengths: [16, 100], on: [.main]),
                ]
                try bench.finish(talks)
                for (probe, before) in zip([first, second], connections) {
                    let moves = probe.events.dropFirst(before).compactMap { event -> PeerState? in
                        if case .stateChanged(let peer, _, _) = event { peer.state } else { nil }
                    }
                    try bench.expect(
                        moves == [.connecting, .connected], "in round \(round) the moves were \(moves)")
                }
                try bench.leave(round % 3 == 0 ? first : second, round % 3 == 0 ? second.id : first.id)
                    .value()
                try bench.waitFor(.available, first, second)
                try bench.waitForLinks(0, at: first)
                try bench.waitForLinks(0, at: second)
            }
        },
    ]
}

extension Bench {
    /// Lets `caller` invite a peer after `delay` nanoseconds.
    fileprivate func invite(_ caller: SessionProbe, _ peer: PeerID, after delay: Int64) -> Answer<PeerID> {
        let answer = Answer<PeerID>("the invitation by session \(caller.number)", on: self)
        let timeout = rig.patience * 10
        let session = caller.session
        session.loop.execute {
            session.loop.schedule(at: session.loop.now + Moment.Span(nanoseconds: delay)) {
                session.invite(peer, timeout: timeout) { answer.take($0) }
            }
        }
        return answer
    }
}
