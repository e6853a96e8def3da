import NighCore

// How conversations and sessions end.

extension SessionConformance {
    static let leavingChecks = [
        ConformanceCheck(
            "leave",
            "messages sent before a peer leaves arrive before its goodbye; then nothing can be sent"
        ) { testbed in
            // This check is not about how long leaving may take: it ends by its own clock, which stops while other
            // programs have the processors.
            let (first, second) = try testbed.connectedSessions {
                $0.timings.linger = testbed.rig.timeout * 10
            }
            let transfer = MessageTransfer(testbed, from: first, to: second, lengths: lengths)
            try testbed.wait("all messages were accepted") { transfer.isOver }
            let missing = Missing(transfer)
            second.reaction = { event, _ in
                guard case .disconnected(let peer, _) = event else { return }
                missing.note()
            }
            let outcome = testbed.disconnect(first, from: second.id)
            try outcome.value()
            try testbed.wait("the other side is notified") { second.state(of: first.id) == .unavailable }
            try testbed.expect(missing.noted == 0, "\(missing.noted ?? -1) messages were missing at the end")
            try testbed.expect(
                first.endings(with: second.id) == [.left] && second.endings(with: first.id) == [.peerLeft],
                "it ended with \(first.endings(with: second.id)) and \(second.endings(with: first.id))")
            var refusal: NighError?
            do throws(NighError) { try first.session.trySend([1], to: second.id) } catch { refusal = error }
            try testbed.expect(refusal != nil, "a message to the other side was accepted")
        },
        ConformanceCheck(
            "leave-unread", "messages that arrived before a peer left can be read afterwards"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions(.inbox)
            let transfer = MessageTransfer(
                testbed, from: first, to: second, lengths: [16, 0, 100, 10_000, 50_000])
            try testbed.wait("all messages were accepted") { transfer.isOver }
            try testbed.disconnect(first, from: second.id).value()
            try testbed.wait("the other side is notified") { second.state(of: first.id) == .unavailable }
            second.readInbox()
            try transfer.finish()
        },
        ConformanceCheck(
            "leave-unacknowledged",
            "leaving a peer that does not read ends in bounded time, and reports what may be lost"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions(.inbox) {
                $0.timings.linger = .milliseconds(300)
            }
            while (try? first.session.trySend([UInt8](repeating: 1, count: 50_000), to: second.id)) != nil {}
            let error = try testbed.disconnect(first, from: second.id).error()
            try testbed.expect(error.stage == .sending, "it failed with: \(error)")
            try testbed.wait("both sides are notified") {
                first.endings(with: second.id) == [.left] && second.endings(with: first.id) == [.peerLeft]
            }
            second.readInbox()
            try testbed.expect(!second.messages.isEmpty, "the messages that had arrived are gone")
        },
        ConformanceCheck(
            "leave-both", "two sessions that leave each other at once are disconnected once"
        ) { testbed in
            for _ in 0..<10 {
                let (first, second) = try testbed.connectedSessions()
                let outcomes = [
                    testbed.disconnect(first, from: second.id), testbed.disconnect(second, from: first.id),
                ]
                try testbed.wait("both calls are answered") { outcomes.allSatisfy { $0.result != nil } }
                try testbed.waitFor(.unavailable, first, second)
                try testbed.waitForLinks(0, at: first)
                try testbed.waitForLinks(0, at: second)
                for (probe, other) in [(first, second), (second, first)] {
                    try testbed.expect(
                        probe.endings(with: other.id).count == 1,
                        "the moves were \(probe.states(of: other.id))")
                }
                for probe in [first, second] { try testbed.kill(probe) }
            }
        },
        ConformanceCheck(
            "close",
            "everything accepted before a close arrives at every peer, and each peer is notified who left"
        ) { testbed in
            // On a slow wire, sending all that was accepted takes longer than a program would wait. This check, too,
            // ends by its own clock.
            let host = try testbed.startSession("Host") { $0.timings.linger = testbed.rig.timeout * 10 }
            let guests = try (1...min(3, testbed.rig.endsAtOnce - 1)).map {
                try testbed.startSession("Guest \($0)")
            }
            for guest in guests { try testbed.connect(guest, host) }
            let transfers = guests.map { MessageTransfer(testbed, from: host, to: $0, lengths: lengths) }
            try testbed.wait("all messages were accepted") { transfers.allSatisfy(\.isOver) }
            try testbed.close(host)
            try testbed.finish(transfers)
            for guest in guests {
                try testbed.wait("the goodbye") { guest.endings(with: host.id) == [.peerLeft] }
            }
            guard case .closed? = host.events.last else {
                throw Testbed.Failure(message: "the last event is not `closed`")
            }
        },
        ConformanceCheck(
            "close-under-way",
            "a close while everything is under way answers every call once and reports nothing afterwards",
            needs: ConformanceNeeds(ends: 6)
        ) { testbed in
            // The pipe to a guest that takes no bytes never drains, so the close may not wait for it.
            let host = try testbed.startSession("Host", role: .peer) {
                $0.timings.linger = .milliseconds(200)
                $0.timings.goodbye = .milliseconds(200)
            }
            // A guest that has no link when the host leaves receives no goodbye.
            let guests = try (1...3).map { number in
                try testbed.startSession("Guest \(number)") { $0.timings.grace = .milliseconds(500) }
            }
            let caller = try testbed.startSession("Asker")
            let stubborn = try testbed.startSession("Stubborn", accepting: false)
            for guest in guests { try testbed.connect(guest, host) }
            host.reaction = nil
            let transfers = guests.flatMap { guest in
                [
                    MessageTransfer(
                        testbed, from: host, to: guest, lengths: [Int](repeating: 3_000, count: 2_000)),
                    MessageTransfer(
                        testbed, from: guest, to: host, lengths: [Int](repeating: 3_000, count: 2_000)),
                ]
            }
            let incomingCall = try testbed.call(caller, host)
            let outgoingCall = try testbed.call(host, stubborn)
            let silentCall = testbed.call(host, at: testbed.rig.silentAddress ?? testbed.rig.refusedAddress)
            try testbed.wait("everything is under way") {
                transfers.allSatisfy { $0.sent > 10 } && !host.invitations.isEmpty
                    && !stubborn.invitations.isEmpty
            }
            try testbed.controlFaults(of: guests[2]) { $0.stall(.all, .incoming) }
            let pings = guests.map { guest in
                let outcome = PendingResult<Duration>("a ping", on: testbed)
                host.session.ping(guest.id) { outcome.complete(with: $0) }
                return outcome
            }
            try testbed.controlFaults(of: guests[1]) { $0.cut() }
            try testbed.close(host)
            let eventCount = host.events.count
            try testbed.wait("every call is answered") {
                outgoingCall.result != nil && silentCall.result != nil
                    && pings.allSatisfy { $0.result != nil }
            }
            try testbed.controlFaults(of: guests[2]) { $0.release() }
            try testbed.wait("the inviting session is notified") { incomingCall.result != nil }
            try testbed.wait("the guests' tasks end") { transfers.allSatisfy(\.isOver) }
            let late = PendingResult<PeerID>("a call after the close", on: testbed)
            host.session.invite(guests[0].id) { late.complete(with: $0) }
            try testbed.expect(try late.error().cause == .closed, "it failed with another cause")
            try testbed.waitQuietTime()
            try testbed.expect(host.events.count == eventCount, "events were reported after the close")
        },
    ]
}

/// Records how many messages of a transfer have not arrived at a given moment.
private final class Missing {
    // Written on one loop, and read when that is known to be over.
    private let transfer: MessageTransfer
    private(set) var noted: Int?

    init(_ transfer: MessageTransfer) { self.transfer = transfer }

    func note() { noted = transfer.missing }
}
