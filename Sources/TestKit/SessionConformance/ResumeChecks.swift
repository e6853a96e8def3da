import NighCore
import NighMemory

// Links that break during a conversation.

extension SessionConformance {
    static let resumeChecks = [
        ConformanceCheck(
            "cut-in-stream",
            "a link cut in the middle of streams is replaced; nothing is lost, nothing arrives twice"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions()
            try testbed.sendWhileCutting(first, second, cuts: 1)
            for (probe, other) in [(first, second), (second, first)] {
                let states = probe.states(of: other.id)
                try testbed.expect(
                    states.suffix(2) == [.reconnecting, .connected] && !states.contains(.disconnected),
                    "the moves were \(states)")
            }
            let counts = try testbed.statistics(of: first).peers[second.id]
            try testbed.expect(counts?.reconnects == 1, "it counts \(counts?.reconnects ?? -1) reconnections")
        },
        ConformanceCheck(
            "cut-many-times",
            "20 cuts of all pipes, at either end and at any moment, lose nothing, and nothing arrives twice"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions()
            try testbed.sendWhileCutting(first, second, cuts: 20)
        },
        ConformanceCheck(
            "cut-in-a-message", "a message cut in the middle arrives once and whole, and the next after it"
        ) { testbed in
            for cutAt in [1_000, 100_000, 700_000] {
                let (first, second) = try testbed.connectedSessions()
                try testbed.controlFaults(of: first) { $0.plan.cutAfterBytes = cutAt }
                let transfer = MessageTransfer(
                    testbed, from: first, to: second, lengths: [1 << 20, 5], on: [.main])
                try testbed.wait("the cut") { first.states(of: second.id).contains(.reconnecting) }
                try testbed.controlFaults(of: first) { $0.plan = .none }
                try transfer.finish()
                try testbed.waitFor(.connected, first, second)
                for probe in [first, second] { try testbed.kill(probe) }
            }
        },
        ConformanceCheck(
            "away-within-grace", "a peer that cannot be reached for less than the grace time loses nothing"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions()
            for probe in [first, second] {
                try testbed.controlFaults(of: probe) { $0.block(.all, .both, dials: .refuse) }
            }
            let transfers = [
                MessageTransfer(testbed, from: first, to: second, lengths: lengths, on: [.main]),
                MessageTransfer(testbed, from: second, to: first, lengths: lengths, on: [.main]),
            ]
            try testbed.waitQuietTime()
            for probe in [first, second] { try testbed.controlFaults(of: probe) { $0.cut() } }
            try testbed.waitFor(.reconnecting, first, second)
            try testbed.waitQuietTime()
            for probe in [first, second] { try testbed.controlFaults(of: probe) { $0.unblock() } }
            try testbed.finish(transfers)
            try testbed.waitFor(.connected, first, second)
        },
        ConformanceCheck(
            "away-beyond-grace",
            "a peer away for longer than the grace time is lost, on both sides, and can be invited again"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions { configuration in
                configuration.timings.grace = .milliseconds(400)
                configuration.timings.dial = .seconds(2)
            }
            for probe in [first, second] { try testbed.controlFaults(of: probe) { $0.block() } }
            try first.session.trySend(Array("lost".utf8), to: second.id)
            for probe in [first, second] { try testbed.controlFaults(of: probe) { $0.cut() } }
            try testbed.wait("both are notified") {
                first.endings(with: second.id).count == 1 && second.endings(with: first.id).count == 1
            }
            for (probe, other) in [(first, second), (second, first)] {
                let cause = probe.endings(with: other.id)[0]
                try testbed.expect(cause == .linkLost, "the conversation ended with: \(cause)")
                var refusal: NighError?
                do throws(NighError) { try probe.session.trySend([1], to: other.id) } catch {
                    refusal = error
                }
                try testbed.expect(refusal?.cause == .notConnected, "sending to a lost peer does not fail")
                try testbed.controlFaults(of: probe) { $0.unblock() }
            }
            try testbed.connect(first, second)
            try first.session.trySend(Array("found".utf8), to: second.id)
            try testbed.wait("they exchange messages again") { second.texts == ["found"] }
        },
        ConformanceCheck(
            "silent-peer",
            "a silent peer is suspected and its link is lost; the conversation resumes once it is heard"
        ) { testbed in
            let (first, second) = try testbed.connectedSessions { configuration in
                configuration.timings.pingAfter = .milliseconds(250)
                configuration.timings.loseAfter = .milliseconds(1_000)
                configuration.timings.dial = .seconds(2)
                configuration.timings.handshake = .seconds(2)
            }
            for probe in [first, second] { try testbed.controlFaults(of: probe) { $0.stall() } }
            try first.session.trySend(Array("kept".utf8), to: second.id)
            try testbed.wait("the suspicion is reported") {
                first.events.contains {
                    if case .peerUnresponsive(let peer) = $0 { peer.id == second.id } else { false }
                }
            }
            try testbed.waitFor(.reconnecting, first, second)
            for probe in [first, second] { try testbed.controlFaults(of: probe) { $0.release() } }
            try testbed.waitFor(.connected, first, second)
            try testbed.wait("the message that was sent meanwhile") { second.texts == ["kept"] }
            try testbed.expect(first.endings(with: second.id).isEmpty, "the conversation ended")
        },
    ]
}

extension Testbed {
    /// Lets two sessions send to each other on both lanes, and meanwhile cuts their link `cuts` times.
    fileprivate func sendWhileCutting(_ first: SessionProbe, _ second: SessionProbe, cuts: Int) throws {
        var random = SeededGenerator(seed: rig.seed)
        // Enough messages for some to be under way at every cut.
        let count = 100 + 50 * cuts
        let lengths = (0..<count).map { number in
            number % 25 == 0 ? Int.random(in: 50_000...200_000, using: &random) : number % 8 * 333
        }
        let transfers = [
            MessageTransfer(self, from: first, to: second, lengths: lengths),
            MessageTransfer(self, from: second, to: first, lengths: lengths),
        ]
        let whole = lengths.count * 4
        for cut in 0..<cuts {
            let goal = whole * (2 * cut + 1) / (2 * cuts + 1)
            try wait("\(goal) messages of \(whole) before cut \(cut)") { self.ledger.received >= goal }
            let probe = cut % 2 == 0 ? first : second

            let seen = (first.reconnections(with: second.id), second.reconnections(with: first.id))
            try controlFaults(of: probe) { $0.cut() }
            try wait("both are notified of cut \(cut) and of its end") {
                first.reconnections(with: second.id) > seen.0 && second.reconnections(with: first.id) > seen.1
                    && first.state(of: second.id) == .connected && second.state(of: first.id) == .connected
            }
        }
        try finish(transfers)
        try waitFor(.connected, first, second)
    }
}

extension SessionProbe {
    /// Returns how many times the link to the peer broke during a conversation.
    fileprivate func reconnections(with peer: PeerID) -> Int {
        states(of: peer).filter { $0 == .reconnecting }.count
    }
}
