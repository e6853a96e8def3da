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
        ) { bench in
            let (first, second) = try bench.talkers()
            try bench.finish([
                Talk(bench, from: first, to: second, lengths: lengths + lengths.reversed()),
                Talk(bench, from: second, to: first, lengths: lengths.reversed() + lengths),
            ])
        },
        ConformanceCheck(
            "many-small", "5,000 small messages each way on each lane arrive once, in order and whole"
        ) { bench in
            let (first, second) = try bench.talkers()
            let many = (0..<5_000).map { $0 % 97 }
            try bench.finish([
                Talk(bench, from: first, to: second, lengths: many),
                Talk(bench, from: second, to: first, lengths: many),
            ])
        },
        ConformanceCheck(
            "in-pieces", "the same holds where bytes come late and in crumbs"
        ) { bench in
            var plan = FaultPlan()
            plan.splitLimit = 700
            plan.delay = .milliseconds(1)
            plan.jitter = .milliseconds(1)
            let (first, second) = try bench.talkers(plan: plan)
            let some = lengths.filter { $0 <= 65_537 }
            try bench.finish([
                Talk(bench, from: first, to: second, lengths: some),
                Talk(bench, from: second, to: first, lengths: some),
            ])
        },
        ConformanceCheck(
            "one-some-all", "what goes to one, to some or to all arrives there and nowhere else",
            needs: ConformanceNeeds(ends: 5)
        ) { bench in
            let host = try bench.join("Host")
            let guests = try (1...4).map { try bench.join("Guest \($0)") }
            for guest in guests { try bench.connect(guest, host) }
            try host.session.trySendToAll(ByteSlice("all".utf8))
            try host.session.trySend(ByteSlice("some".utf8), to: [guests[0].id, guests[2].id])
            try host.session.trySend(Array("one".utf8), to: guests[3].id)
            try host.session.trySendToAll(ByteSlice("end".utf8))
            try bench.wait("all have all") { guests.allSatisfy { $0.texts.last == "end" } }
            let texts = guests.map(\.texts)
            try bench.expect(
                texts == [
                    ["all", "some", "end"], ["all", "end"], ["all", "some", "end"], ["all", "one", "end"],
                ], "what arrived was \(texts)")
            try bench.expect(host.messages.isEmpty, "the host sent to itself")
        },
        ConformanceCheck(
            "unreliable", "unreliable messages arrive at most once and in order, and are dropped, not queued"
        ) { bench in
            let (first, second) = try bench.talkers()
            try first.session.trySend(Array("quick".utf8), to: second.id, .unreliable)
            try bench.wait("an unreliable message on an idle link") { second.texts == ["quick"] }
            try bench.expect(second.messages[0].origin.isReliable == false, "it came as a reliable one")
            try bench.disturb(first) { $0.stall() }
            let count = 4_000
            for number in 0..<count {
                var bytes = [UInt8](repeating: 0, count: 1_000)
                bytes[0] = UInt8(number >> 8)
                bytes[1] = UInt8(number & 0xFF)
                try first.session.trySend(bytes, to: second.id, .unreliable)
            }
            let stalled = try bench.statistics(of: first).peers[second.id]?.unreliableDropped ?? 0
            try bench.expect(stalled > count / 2, "\(stalled) of \(count) were dropped on a stalled link")
            try bench.disturb(first) { $0.release() }
            try first.session.trySend(Array("end".utf8), to: second.id)
            try bench.wait("the link goes on") { second.texts.last == "end" }
            let dropped = try bench.statistics(of: first).peers[second.id]?.unreliableDropped ?? 0
            let numbers = second.messages.filter { $0.bytes.count == 1_000 }.map {
                Int($0.bytes[0]) << 8 | Int($0.bytes[1])
            }
            try bench.expect(
                zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 }, "some came twice or out of order")
            try bench.expect(
                numbers.count <= count - dropped,
                "\(numbers.count) came and \(dropped) were dropped of \(count)")
        },
        ConformanceCheck(
            "small-overtakes-large", "five round trips pass while 16 MiB are under way on the other lane"
        ) { bench in
            var plan = FaultPlan()
            plan.bytesPerSecond = 16 << 20
            let first = try bench.join("First", plan: plan)
            let second = try bench.join("Second")
            try bench.connect(first, second)
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
            try bench.wait(
                "the large message arrives",
                while: { (try bench.statistics(of: second).peers[first.id]?.link?.bytesReceived ?? 0) >> 16 }
            ) { second.messages.contains { $0.bytes.count > 1 } }
            let before = second.messages.prefix { $0.bytes.count == 1 }.count
            try bench.expect(before == 5, "\(before) of 5 round trips passed before 16 MiB had arrived")
            try bench.expect(second.messages[before].bytes == large.bytes, "the large message is another")
        },
        ConformanceCheck(
            "ping-and-statistics", "pings are answered and measured, and the counts of both sides agree"
        ) { bench in
            let (first, second) = try bench.talkers()
            for size in [0, 1, 1_024] {
                let answer = Answer<Duration>("a ping of \(size) bytes", on: bench)
                first.session.ping(second.id, payload: [UInt8](repeating: 1, count: size)) { answer.take($0) }
                try bench.expect(try answer.value() >= .zero, "the round trip is negative")
            }
            let talk = Talk(bench, from: first, to: second, lengths: [16, 0, 100, 70_000])
            try talk.finish()
            try bench.wait("all is acknowledged", at: first) { session in
                session.inspection(of: second.id)?.bytesWaiting == 0
            }
            let sent = try bench.statistics(of: first).peers[second.id] ?? PeerStatistics()
            let got = try bench.statistics(of: second).peers[first.id] ?? PeerStatistics()
            try bench.expect(
                sent.messagesSent == 8 && got.messagesReceived == 8 && sent.bytesSent == got.bytesReceived,
                "\(sent.messagesSent) messages of \(sent.bytesSent) bytes went, \(got.messagesReceived) of "
                    + "\(got.bytesReceived) came")
            try bench.expect(sent.reconnects == 0 && sent.messagesResent == 0, "the link broke")
            try bench.expect(
                sent.transport != nil && sent.link?.roundTrip.least != nil, "the link says nothing of itself")
            let stranger = Answer<Duration>("a ping to nobody", on: bench)
            first.session.ping(first.id) { stranger.take($0) }
            _ = try stranger.error()
        },
    ]
}
