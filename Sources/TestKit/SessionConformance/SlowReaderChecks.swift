import NighCore

// Readers that are slower than their senders.

extension SessionConformance {
    static let slowReaderChecks = [
        ConformanceCheck(
            "slow-reader",
            "a peer that does not read stops its sender at the limit that the error names, and loses nothing"
        ) { testbed in
            for lane in Lane.allCases {
                let (first, second) = try testbed.connectedSessions(.inbox)
                let (accepted, refusal) = try testbed.fill(first, second, on: lane)
                let limits = first.session.configuration.limits
                try testbed.expect(
                    refusal.cause == .bufferFull(limit: limits.sendBuffer), "it was stopped by: \(refusal)")
                try testbed.expect(
                    refusal.description.contains(second.id.short),
                    "the error does not name the peer: \(refusal)")
                // One message more for each of the two, and the overhead of each.
                let most = (limits.sendBuffer + limits.receiveWindow) / Testbed.blockSize + 4
                try testbed.expect(accepted <= most, "\(accepted) blocks were accepted, \(most) are allowed")
                let unread = try testbed.statistics(of: second).peers[first.id]?.bytesUnread ?? 0
                try testbed.expect(
                    unread <= limits.receiveWindow + 2 * Testbed.blockSize, "\(unread) bytes are unread")
                try testbed.readUntil(second, has: accepted)
                try testbed.expect(
                    second.messages.enumerated().allSatisfy { index, message in
                        message.bytes.count == Testbed.blockSize && message.bytes[0] == UInt8(index & 0xFF)
                    }, "the messages that were read differ from those that were sent")
                try first.session.trySend([1], to: second.id, .reliable(lane))
                try testbed.readUntil(second, has: accepted + 1)
                for probe in [first, second] { try testbed.kill(probe) }
            }
        },
        ConformanceCheck(
            "waiting-sender",
            "a sender that waits for room continues once the receiver reads, and loses nothing"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions(.inbox)
            let limits = SessionLimits()
            let count = 2 * (limits.sendBuffer + limits.receiveWindow) / Testbed.blockSize
            let transfer = MessageTransfer(
                testbed, from: first, to: second, lengths: [Int](repeating: Testbed.blockSize, count: count))
            var sent = -1
            while sent != transfer.sent {
                sent = transfer.sent
                try testbed.waitQuietTime()
            }
            try testbed.expect(!transfer.isOver, "all messages were accepted for a peer that does not read")
            let reader = InboxReader(second, on: testbed)
            defer { reader.end() }
            try transfer.finish()
        },
        ConformanceCheck(
            "slow-reader-alone", "a peer that does not read delays no other peer, and pings are answered",
            needs: ConformanceNeeds(ends: 3)
        ) { testbed in
            let host = try testbed.startSession("Host")
            let sleeper = try testbed.startSession("Sleeper", reading: .inbox)
            let reader = try testbed.startSession("Reader")
            try testbed.connect(sleeper, host)
            try testbed.connect(reader, host)
            let (accepted, _) = try testbed.fill(host, sleeper, on: .main)
            try MessageTransfer(testbed, from: host, to: reader, lengths: SessionConformance.lengths).finish()
            try MessageTransfer(testbed, from: sleeper, to: host, lengths: SessionConformance.lengths)
                .finish()
            let outcome = PendingResult<Duration>("a ping to a peer that does not read", on: testbed)
            host.session.ping(sleeper.id) { outcome.complete(with: $0) }
            try outcome.value()
            try testbed.readUntil(sleeper, has: accepted)
        },
        ConformanceCheck(
            "slow-line", "a stalled link stops the sender; once it is released, everything arrives"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions()
            try testbed.controlFaults(of: first) { $0.stall(.all, .outgoing) }
            let (accepted, refusal) = try testbed.fill(first, second, on: .main)
            let limit = first.session.configuration.limits.sendBuffer
            try testbed.expect(refusal.cause == .bufferFull(limit: limit), "it was stopped by: \(refusal)")
            try testbed.controlFaults(of: first) { $0.release() }
            try testbed.wait("all messages arrive") { second.messages.count == accepted }
        },
    ]
}

extension Testbed {
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
            try waitQuietTime()
        }
        guard let refusal else { throw Failure(message: "\(accepted) blocks were accepted without an end") }
        return (accepted, refusal)
    }

    /// Reads a session's inbox until `count` messages have been read.
    fileprivate func readUntil(_ probe: SessionProbe, has count: Int) throws {
        let reader = InboxReader(probe, on: self)
        defer { reader.end() }
        try wait("\(count) messages can be read") { probe.messages.count >= count }
        try expect(probe.messages.count == count, "\(probe.messages.count) messages were read of \(count)")
    }
}

/// Reads the inbox of a session on its loop, from time to time, until `end` is called.
final class InboxReader: @unchecked Sendable {
    private let probe: SessionProbe
    private let testbed: Testbed
    // Guarded by the testbed's monitor.
    private var isOver = false

    init(_ probe: SessionProbe, on testbed: Testbed) {
        self.probe = probe
        self.testbed = testbed
        probe.session.loop.execute { self.poll() }
    }

    func end() { testbed.monitor.change { isOver = true } }

    private func poll() {
        guard !testbed.monitor.read({ isOver }) else { return }
        probe.readInbox()
        let loop = probe.session.loop
        loop.schedule(at: loop.now + .milliseconds(1)) { self.poll() }
    }
}
