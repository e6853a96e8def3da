import NighCore

// How conversations and sessions end.

extension SessionConformance {
    static let leavingChecks = [
        ConformanceCheck(
            "leave",
            "what was sent before leaving arrives before the other side is told; then nothing can be sent"
        ) { bench in
            // This check is not about how long leaving may take.
            let (first, second) = try bench.talkers { $0.timings.linger = bench.rig.patience }
            let talk = Talk(bench, from: first, to: second, lengths: lengths)
            try bench.wait("all was taken") { talk.isOver }
            let missing = Missing(talk)
            second.reaction = { event, _ in
                guard case .stateChanged(let peer, _, _) = event, peer.state == .disconnected else { return }
                missing.note()
            }
            let answer = bench.leave(first, second.id)
            try answer.value()
            try bench.wait("the other side is told") { second.state(of: first.id) == .unavailable }
            try bench.expect(missing.noted == 0, "\(missing.noted ?? -1) messages were missing at the end")
            try bench.expect(
                first.endings(with: second.id) == [.left] && second.endings(with: first.id) == [.peerLeft],
                "it ended with \(first.endings(with: second.id)) and \(second.endings(with: first.id))")
            var refusal: NighError?
            do throws(NighError) { try first.session.trySend([1], to: second.id) } catch { refusal = error }
            try bench.expect(refusal != nil, "one can send to who was left")
        },
        ConformanceCheck(
            "leave-unread", "what came before a peer left can be read afterwards"
        ) { bench in
            let (first, second) = try bench.talkers(.inbox)
            let talk = Talk(bench, from: first, to: second, lengths: [16, 0, 100, 10_000, 50_000])
            try bench.wait("all was taken") { talk.isOver }
            try bench.leave(first, second.id).value()
            try bench.wait("the other side is told") { second.state(of: first.id) == .unavailable }
            second.readInbox()
            try talk.finish()
        },
        ConformanceCheck(
            "leave-unacknowledged",
            "leaving who does not read ends in bounded time, and says what may be lost"
        ) { bench in
            let (first, second) = try bench.talkers(.inbox) { $0.timings.linger = .milliseconds(300) }
            while (try? first.session.trySend([UInt8](repeating: 1, count: 50_000), to: second.id)) != nil {}
            let error = try bench.leave(first, second.id).error()
            try bench.expect(error.stage == .sending, "it failed with: \(error)")
            try bench.wait("both sides are told") {
                first.endings(with: second.id) == [.left] && second.endings(with: first.id) == [.peerLeft]
            }
            second.readInbox()
            try bench.expect(!second.messages.isEmpty, "what had arrived is gone")
        },
        ConformanceCheck(
            "leave-both", "two that leave each other at once part, once"
        ) { bench in
            for _ in 0..<10 {
                let (first, second) = try bench.talkers()
                let answers = [bench.leave(first, second.id), bench.leave(second, first.id)]
                try bench.wait("both calls are answered") { answers.allSatisfy { $0.result != nil } }
                try bench.waitFor(.unavailable, first, second)
                try bench.waitForLinks(0, at: first)
                try bench.waitForLinks(0, at: second)
                for (probe, other) in [(first, second), (second, first)] {
                    try bench.expect(
                        probe.endings(with: other.id).count == 1,
                        "the moves were \(probe.moves(of: other.id))")
                }
                for probe in [first, second] { try bench.kill(probe) }
            }
        },
        ConformanceCheck(
            "close", "everything accepted before a close arrives at every peer, and each is told who left"
        ) { bench in
            // On a slow wire, sending all that was accepted takes longer than a program would wait.
            let host = try bench.join("Host") { $0.timings.linger = bench.rig.patience }
            let guests = try (1...min(3, bench.rig.endsAtOnce - 1)).map { try bench.join("Guest \($0)") }
            for guest in guests { try bench.connect(guest, host) }
            let talks = guests.map { Talk(bench, from: host, to: $0, lengths: lengths) }
            try bench.wait("all was taken") { talks.allSatisfy(\.isOver) }
            try bench.close(host)
            try bench.finish(talks)
            for guest in guests {
                try bench.wait("the goodbye") { guest.endings(with: host.id) == [.peerLeft] }
            }
            guard case .closed? = host.events.last else {
                throw Bench.Failure(words: "the last event is not `closed`")
            }
        },
        ConformanceCheck(
            "close-under-way",
            "a close in the middle of everything answers every call once, and nothing is called back afterwards",
            needs: ConformanceNeeds(ends: 6)
        ) { bench in
            let host = try bench.join("Host", role: .peer) { $0.timings.linger = .milliseconds(200) }
            // A guest that has no link when the host leaves receives no goodbye.
            let guests = try (1...3).map { number in
                try bench.join("Guest \(number)") { $0.timings.grace = .milliseconds(500) }
            }
            let asker = try bench.join("Asker")
            let stubborn = try bench.join("Stubborn", accepting: false)
            for guest in guests { try bench.connect(guest, host) }
            host.reaction = nil
            let talks = guests.flatMap { guest in
                [
                    Talk(bench, from: host, to: guest, lengths: [Int](repeating: 3_000, count: 2_000)),
                    Talk(bench, from: guest, to: host, lengths: [Int](repeating: 3_000, count: 2_000)),
                ]
            }
            let asking = try bench.call(asker, host)
            let calling = try bench.call(host, stubborn)
            let dialling = bench.call(host, at: bench.rig.silentAddress ?? bench.rig.refusedAddress)
            try bench.wait("everything is under way") {
                talks.allSatisfy { $0.sent > 10 } && !host.invitations.isEmpty
                    && !stubborn.invitations.isEmpty
            }
            try bench.disturb(guests[2]) { $0.stall(.all, .incoming) }
            let pings = guests.map { guest in
                let answer = Answer<Duration>("a ping", on: bench)
                host.session.ping(guest.id) { answer.take($0) }
                return answer
            }
            try bench.disturb(guests[1]) { $0.cut() }
            try bench.close(host)
            let eventCount = host.events.count
            try bench.wait("every call is answered") {
                calling.result != nil && dialling.result != nil && pings.allSatisfy { $0.result != nil }
            }
            try bench.disturb(guests[2]) { $0.release() }
            try bench.wait("who asked is told") { asking.result != nil }
            try bench.wait("the guests' tasks are let go") { talks.allSatisfy(\.isOver) }
            let late = Answer<PeerID>("a call after the close", on: bench)
            host.session.invite(guests[0].id) { late.take($0) }
            try bench.expect(try late.error().cause == .closed, "one can call after the close")
            try bench.settle()
            try bench.expect(host.events.count == eventCount, "events were told after the close")
        },
    ]
}

/// Records how many messages of a talk have not arrived at a given moment.
private final class Missing: @unchecked Sendable {
    // Written on one loop, and read when that is known to be over.
    private let talk: Talk
    private(set) var noted: Int?

    init(_ talk: Talk) { self.talk = talk }

    func note() { noted = talk.missing }
}
