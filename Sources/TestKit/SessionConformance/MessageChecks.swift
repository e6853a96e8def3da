import NighCore
import NighMemory

// Messages on links that do not break.

extension SessionConformance {
    /// Lengths around the sizes at which something changes: zero, a frame, a piece, the window, and large messages.
    static let lengths = [
        0, 1, 2, 15, 16, 17, 63, 64, 65, 1_000, 4_095, 4_096, 8_191, 8_192, 16_368, 16_383, 16_384, 16_385,
        32_768,
        65_535, 65_536, 65_537, 262_143, 262_144, 262_145, 300_000, 1 << 20, 0, 0, 1,
    ]

    static let messageChecks = [
        ConformanceCheck(
            "every-size",
            "messages of 0 bytes to 1 MiB arrive once, in order and whole, on both lanes, both ways at once"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions()
            try testbed.finish([
                MessageTransfer(testbed, from: first, to: second, lengths: lengths + lengths.reversed()),
                MessageTransfer(testbed, from: second, to: first, lengths: lengths.reversed() + lengths),
            ])
        },
        ConformanceCheck(
            "many-small", "5,000 small messages each way on each lane arrive once, in order and whole"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions()
            let many = (0..<5_000).map { $0 % 97 }
            try testbed.finish([
                MessageTransfer(testbed, from: first, to: second, lengths: many),
                MessageTransfer(testbed, from: second, to: first, lengths: many),
            ])
        },
        ConformanceCheck(
            "in-pieces", "messages arrive once, in order and whole if bytes come late and in small pieces"
        ) { testbed in
            var plan = FaultPlan()
            plan.splitLimit = 700
            plan.delay = .milliseconds(1)
            plan.jitter = .milliseconds(1)
            let (first, second) = try testbed.connectedSessions(plan: plan)
            let some = lengths.filter { $0 <= 65_537 }
            try testbed.finish([
                MessageTransfer(testbed, from: first, to: second, lengths: some),
                MessageTransfer(testbed, from: second, to: first, lengths: some),
            ])
        },
        ConformanceCheck(
            "one-some-all", "a message to one, some or all peers arrives at those peers and no others",
            needs: ConformanceNeeds(ends: 5)
        ) { testbed in
            let host = try testbed.startSession("Host")
            let guests = try (1...4).map { try testbed.startSession("Guest \($0)") }
            for guest in guests { try testbed.connect(guest, host) }
            try host.session.trySend(ByteSlice("all".utf8), to: host.session.connectedPeerIDs)
            try host.session.trySend(ByteSlice("some".utf8), to: [guests[0].id, guests[2].id])
            try host.session.trySend(Array("one".utf8), to: guests[3].id)
            try host.session.trySend(ByteSlice("end".utf8), to: host.session.connectedPeerIDs)
            try testbed.wait("all guests have their messages") {
                guests.allSatisfy { $0.texts.last == "end" }
            }
            let texts = guests.map(\.texts)
            try testbed.expect(
                texts == [
                    ["all", "some", "end"], ["all", "end"], ["all", "some", "end"], ["all", "one", "end"],
                ], "the messages that arrived are \(texts)")
            try testbed.expect(host.messages.isEmpty, "the host sent to itself")
        },
        ConformanceCheck(
            "unreliable", "unreliable messages arrive at most once and in order, and are dropped, not queued"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions()
            try first.session.trySend(Array("quick".utf8), to: second.id, .unreliable)
            try testbed.wait("an unreliable message on an idle link") { second.texts == ["quick"] }
            try testbed.expect(second.messages[0].origin.isReliable == false, "it arrived as a reliable one")
            try testbed.controlFaults(of: first) { $0.stall() }
            let count = 4_000
            for number in 0..<count {
                var bytes = [UInt8](repeating: 0, count: 1_000)
                bytes[0] = UInt8(number >> 8)
                bytes[1] = UInt8(number & 0xFF)
                try first.session.trySend(bytes, to: second.id, .unreliable)
            }
            let stalled = try testbed.statistics(of: first).peers[second.id]?.unreliableDropped ?? 0
            try testbed.expect(stalled > count / 2, "\(stalled) of \(count) were dropped on a stalled link")
            try testbed.controlFaults(of: first) { $0.release() }
            try first.session.trySend(Array("end".utf8), to: second.id)
            try testbed.wait("the link continues") { second.texts.last == "end" }
            let dropped = try testbed.statistics(of: first).peers[second.id]?.unreliableDropped ?? 0
            let numbers = second.messages.filter { $0.bytes.count == 1_000 }.map {
                Int($0.bytes[0]) << 8 | Int($0.bytes[1])
            }
            try testbed.expect(
                zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 },
                "some arrived twice or out of order")
            try testbed.expect(
                numbers.count <= count - dropped,
                "\(numbers.count) arrived and \(dropped) were dropped of \(count)")
        },
        ConformanceCheck(
            "small-overtakes-large", "five round trips pass while 16 MiB are under way on the other lane"
        ) { testbed in
            var plan = FaultPlan()
            plan.bytesPerSecond = 4 << 20
            let first = try testbed.startSession("First", plan: plan)
            let second = try testbed.startSession("Second")
            try testbed.connect(first, second)
            first.messageReaction = { bytes, origin, session in
                if bytes[0] < 5 { try? session.trySend([bytes[0] + 1], to: origin.peer) }
            }
            second.messageReaction = { bytes, origin, session in
                if bytes.count == 1 { try? session.trySend(bytes, to: origin.peer) }
            }
            let large = ByteSlice([UInt8](repeating: 7, count: 16 << 20))
            try first.session.trySend(large, to: second.id, .reliable(.bulk))
            try first.session.trySend([1], to: second.id)
            // Counted in steps of 64 KiB, so that keep-alive alone is no progress.
            try testbed.wait(
                "the large message arrives",
                while: {
                    (try testbed.statistics(of: second).peers[first.id]?.link?.bytesReceived ?? 0) >> 16
                }
            ) { second.messages.contains { $0.bytes.count > 1 } }
            let before = second.messages.prefix { $0.bytes.count == 1 }.count
            try testbed.expect(before == 5, "\(before) of 5 round trips passed before 16 MiB had arrived")
            try testbed.expect(second.messages[before].bytes == large.bytes, "the large message was changed")
        },
        ConformanceCheck(
            "ping-and-statistics", "pings are answered and measured, and the counts of both sides agree"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions()
            for size in [0, 1, 1_024] {
                let outcome = PendingResult<Duration>("a ping of \(size) bytes", on: testbed)
                first.session.ping(second.id, payload: [UInt8](repeating: 1, count: size)) {
                    outcome.complete(with: $0)
                }
                try testbed.expect(try outcome.value() >= .zero, "the round trip is negative")
            }
            let transfer = MessageTransfer(testbed, from: first, to: second, lengths: [16, 0, 100, 70_000])
            try transfer.finish()
            try testbed.wait("all is acknowledged", at: first) { session in
                session.inspection(of: second.id)?.bytesWaiting == 0
            }
            let sent = try testbed.statistics(of: first).peers[second.id] ?? PeerStatistics()
            let got = try testbed.statistics(of: second).peers[first.id] ?? PeerStatistics()
            try testbed.expect(
                sent.messagesSent == 8 && got.messagesReceived == 8 && sent.bytesSent == got.bytesReceived,
                "\(sent.messagesSent) messages of \(sent.bytesSent) bytes were sent, "
                    + "\(got.messagesReceived) of \(got.bytesReceived) bytes arrived")
            try testbed.expect(sent.reconnects == 0 && sent.messagesResent == 0, "the link broke")
            try testbed.expect(
                sent.transport != nil && sent.link?.roundTrip.minimum != nil, "the link has no statistics")
            let stranger = PendingResult<Duration>("a ping to nobody", on: testbed)
            first.session.ping(first.id) { stranger.complete(with: $0) }
            _ = try stranger.error()
        },
    ]
}
