import NighCore

// Readers that are slower than their senders.

extension SessionConformance {
    static let slownessChecks = [
        ConformanceCheck(
            "slow-reader",
            "who does not read holds its sender up at the limit, which the error names, and loses nothing"
        ) { bench in
            for lane in Lane.allCases {
                let (first, second) = try bench.talkers(.inbox)
                let (accepted, refusal) = try bench.fill(first, second, on: lane)
                let limits = first.session.configuration.limits
                try bench.expect(
                    refusal.cause == .bufferFull(limit: limits.sendBuffer), "it was held up by: \(refusal)")
                try bench.expect(
                    refusal.description.contains(second.id.short), "the error does not say whom: \(refusal)")
                // One message more for each of the two, and the overhead of each.
                let most = (limits.sendBuffer + limits.receiveWindow) / Bench.blockSize + 4
                try bench.expect(accepted <= most, "\(accepted) blocks were taken, \(most) are allowed")
                let unread = try bench.statistics(of: second).peers[first.id]?.bytesUnread ?? 0
                try bench.expect(
                    unread <= limits.receiveWindow + 2 * Bench.blockSize, "\(unread) bytes are unread")
                try bench.readUntil(second, has: accepted)
                try bench.expect(
                    second.messages.enumerated().allSatisfy { index, message in
                        message.bytes.count == Bench.blockSize && message.bytes[0] == UInt8(index & 0xFF)
                    }, "what was read is not what was sent")
                try first.session.trySend([1], to: second.id, .reliable(lane))
                try bench.readUntil(second, has: accepted + 1)
                for probe in [first, second] { try bench.kill(probe) }
            }
        },
        ConformanceCheck(
            "waiting-sender", "a sender that waits for room goes on once the reader reads, and loses nothing"
        ) { bench in
            let (first, second) = try bench.talkers(.inbox)
            let limits = SessionLimits()
            let count = 2 * (limits.sendBuffer + limits.receiveWindow) / Bench.blockSize
            let talk = Talk(
                bench, from: first, to: second, lengths: [Int](repeating: Bench.blockSize, count: count))
            var sent = -1
            while sent != talk.sent {
                sent = talk.sent
                try bench.settle()
            }
            try bench.expect(!talk.isOver, "all were taken for a reader that does not read")
            let reading = Reading(second, on: bench)
            defer { reading.end() }
            try talk.finish()
        },
        ConformanceCheck(
            "slow-reader-alone", "one reader that does not read holds up nobody else, and pings are answered",
            needs: ConformanceNeeds(ends: 3)
        ) { bench in
            let host = try bench.join("Host")
            let sleeper = try bench.join("Sleeper", reading: .inbox)
            let reader = try bench.join("Reader")
            try bench.connect(sleeper, host)
            try bench.connect(reader, host)
            let (accepted, _) = try bench.fill(host, sleeper, on: .main)
            try Talk(bench, from: host, to: reader, lengths: SessionConformance.lengths).finish()
            try Talk(bench, from: sleeper, to: host, lengths: SessionConformance.lengths).finish()
            let answer = Answer<Duration>("a ping to who does not read", on: bench)
            host.session.ping(sleeper.id) { answer.take($0) }
            try answer.value()
            try bench.readUntil(sleeper, has: accepted)
        },
        ConformanceCheck(
            "slow-line", "a stalled link holds the sender up; let go, everything arrives"
        ) { bench in
            let (first, second) = try bench.talkers()
            try bench.disturb(first) { $0.stall(.all, .outgoing) }
            let (accepted, refusal) = try bench.fill(first, second, on: .main)
            let limit = first.session.configuration.limits.sendBuffer
            try bench.expect(refusal.cause == .bufferFull(limit: limit), "it was held up by: \(refusal)")
            try bench.disturb(first) { $0.release() }
            try bench.wait("all arrive") { second.messages.count == accepted }
        },
    ]
}

extension Bench {
    static let blockSize = 20_000

    /// Sends blocks until the session accepts no more, even after a quiet time. Returns how many it accepted, and the
    /// error of the last refusal.
    fileprivate func fill(
        _ sender: SessionProbe, _ receiver: SessionProbe, on lane: Lane
    ) throws -> (accepted: Int, refusal: NighError) {
        var accepted = 0
        var refusal: NighError?
        var before = -1
        while before != accepted {
            before = accepted
            do throws(NighError) {
                while accepted < 1_000 {
                    let block = [UInt8](repeating: UInt8(accepted & 0xFF), count: Self.blockSize)
                    try sender.session.trySend(block, to: receiver.id, .reliable(lane))
                    accepted += 1
                }
            } catch {
                refusal = error
            }
            try settle()
        }
        guard let refusal else { throw Failure(words: "\(accepted) blocks were taken without an end") }
        return (accepted, refusal)
    }

    /// Reads a session's inbox until `count` messages have been read.
    fileprivate func readUntil(_ probe: SessionProbe, has count: Int) throws {
        let reading = Reading(probe, on: self)
        defer { reading.end() }
        try wait("\(count) messages can be read") { probe.messages.count >= count }
        try expect(probe.messages.count == count, "\(probe.messages.count) were read of \(count)")
    }
}

/// Reads the inbox of a session on its loop, from time to time, until `end` is called.
final class Reading: @unchecked Sendable {
    private let probe: SessionProbe
    private let bench: Bench
    // Guarded by the bench's monitor.
    private var isOver = false

    init(_ probe: SessionProbe, on bench: Bench) {
        self.probe = probe
        self.bench = bench
        probe.session.loop.execute { self.look() }
    }

    func end() { bench.monitor.change { isOver = true } }

    private func look() {
        guard !bench.monitor.read({ isOver }) else { return }
        probe.readInbox()
        let loop = probe.session.loop
        loop.schedule(at: loop.now + .milliseconds(1)) { self.look() }
    }
}
