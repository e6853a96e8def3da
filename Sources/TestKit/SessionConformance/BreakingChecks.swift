import NighCore
import NighMemory

// Links that break during a conversation.

extension SessionConformance {
    static let breakingChecks = [
        ConformanceCheck(
            "cut-in-stream",
            "a link cut in the middle of streams is replaced; nothing is lost, nothing comes twice"
        ) { bench in
            let (first, second) = try bench.talkers()
            try bench.talkWhileCutting(first, second, cuts: 1)
            for (probe, other) in [(first, second), (second, first)] {
                let moves = probe.moves(of: other.id)
                try bench.expect(
                    moves.suffix(2) == [.reconnecting, .connected] && !moves.contains(.disconnected),
                    "the moves were \(moves)")
            }
            let counts = try bench.statistics(of: first).peers[second.id]
            try bench.expect(counts?.reconnects == 1, "it counts \(counts?.reconnects ?? -1) reconnections")
        },
        ConformanceCheck(
            "cut-many-times", "the same for 20 cuts, at either end, of all pipes, at any moment"
        ) { bench in
            let (first, second) = try bench.talkers()
            try bench.talkWhileCutting(first, second, cuts: 20)
        },
        ConformanceCheck(
            "cut-in-a-message", "a message cut in the middle arrives once and whole, and the next after it"
        ) { bench in
            for cutAt in [1_000, 100_000, 700_000] {
                let (first, second) = try bench.talkers()
                try bench.disturb(first) { $0.plan.cutAfterBytes = cutAt }
                let talk = Talk(bench, from: first, to: second, lengths: [1 << 20, 5], on: [.main])
                try bench.wait("the cut") { first.moves(of: second.id).contains(.reconnecting) }
                try bench.disturb(first) { $0.plan = .none }
                try talk.finish()
                try bench.waitFor(.connected, first, second)
                for probe in [first, second] { try bench.kill(probe) }
            }
        },
        ConformanceCheck(
            "away-within-grace", "a peer that cannot be reached for less than the grace time loses nothing"
        ) { bench in
            let (first, second) = try bench.talkers()
            for probe in [first, second] {
                try bench.disturb(probe) { $0.block(.all, .both, dials: .refuse) }
            }
            let talks = [
                Talk(bench, from: first, to: second, lengths: lengths, on: [.main]),
                Talk(bench, from: second, to: first, lengths: lengths, on: [.main]),
            ]
            try bench.settle()
            for probe in [first, second] { try bench.disturb(probe) { $0.cut() } }
            try bench.waitFor(.reconnecting, first, second)
            try bench.settle()
            for probe in [first, second] { try bench.disturb(probe) { $0.unblock() } }
            try bench.finish(talks)
            try bench.waitFor(.connected, first, second)
        },
        ConformanceCheck(
            "away-beyond-grace", "a peer away for longer is lost: both sides are told, and can meet again"
        ) { bench in
            let (first, second) = try bench.talkers { configuration in
                configuration.timings.grace = .milliseconds(400)
                configuration.timings.dial = .seconds(2)
            }
            for probe in [first, second] { try bench.disturb(probe) { $0.block() } }
            try first.session.trySend(Array("lost".utf8), to: second.id)
            for probe in [first, second] { try bench.disturb(probe) { $0.cut() } }
            try bench.wait("both are told") {
                first.endings(with: second.id).count == 1 && second.endings(with: first.id).count == 1
            }
            for (probe, other) in [(first, second), (second, first)] {
                let cause = probe.endings(with: other.id)[0]
                try bench.expect(cause == .linkLost, "the conversation ended with: \(cause)")
                var refusal: NighError?
                do throws(NighError) { try probe.session.trySend([1], to: other.id) } catch {
                    refusal = error
                }
                try bench.expect(refusal?.cause == .notConnected, "sending to who is lost does not fail")
                try bench.disturb(probe) { $0.unblock() }
            }
            try bench.connect(first, second)
            try first.session.trySend(Array("found".utf8), to: second.id)
            try bench.wait("they talk again") { second.texts == ["found"] }
        },
        ConformanceCheck(
            "silent-peer",
            "a peer that falls silent is suspected, then its link is lost; heard again, it goes on"
        ) { bench in
            let (first, second) = try bench.talkers { configuration in
                configuration.timings.askAfter = .milliseconds(250)
                configuration.timings.loseAfter = .milliseconds(1_000)
                configuration.timings.dial = .seconds(2)
                configuration.timings.handshake = .seconds(2)
            }
            for probe in [first, second] { try bench.disturb(probe) { $0.stall() } }
            try first.session.trySend(Array("kept".utf8), to: second.id)
            try bench.wait("the suspicion is told") {
                first.events.contains {
                    if case .suspected(second.id, true) = $0 { true } else { false }
                }
            }
            try bench.waitFor(.reconnecting, first, second)
            for probe in [first, second] { try bench.disturb(probe) { $0.release() } }
            try bench.waitFor(.connected, first, second)
            try bench.wait("what was sent meanwhile") { second.texts == ["kept"] }
            try bench.expect(first.endings(with: second.id).isEmpty, "the conversation ended")
        },
    ]
}

extension Bench {
    /// Lets two sessions send to each other on both lanes, and meanwhile cuts their link `cuts` times.
    fileprivate func talkWhileCutting(_ first: SessionProbe, _ second: SessionProbe, cuts: Int) throws {
        var random = SeededGenerator(seed: rig.seed)
        // Enough messages for some to be under way at every cut.
        let count = 100 + 50 * cuts
        let lengths = (0..<count).map { number in
            number % 25 == 0 ? Int.random(in: 50_000...200_000, using: &random) : number % 8 * 333
        }
        let talks = [
            Talk(self, from: first, to: second, lengths: lengths),
            Talk(self, from: second, to: first, lengths: lengths),
        ]
        let whole = lengths.count * 4
        for cut in 0..<cuts {
            let goal = whole * (2 * cut + 1) / (2 * cuts + 1)
            try wait("\(goal) messages of \(whole) before cut \(cut)") { self.ledger.received >= goal }
            let probe = cut % 2 == 0 ? first : second

            let seen = (first.reconnections(with: second.id), second.reconnections(with: first.id))
            try disturb(probe) { $0.cut() }
            try wait("both are told of cut \(cut), and of its end") {
                first.reconnections(with: second.id) > seen.0 && second.reconnections(with: first.id) > seen.1
                    && first.state(of: second.id) == .connected && second.state(of: first.id) == .connected
            }
        }
        try finish(talks)
        try waitFor(.connected, first, second)
    }
}

extension SessionProbe {
    /// Returns how many times the link to the peer broke during a conversation.
    fileprivate func reconnections(with peer: PeerID) -> Int {
        moves(of: peer).filter { $0 == .reconnecting }.count
    }
}
