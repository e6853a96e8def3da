import NighCore

/// Decides when a session of a mesh asks for introductions to the peers that it lacks, and which introducers it asks.
///
/// It bounds the work that others can cause: a few invitations at once, pauses that double after failures, a rest from
/// peers whose introductions fail, and a number of failures for all of them together, because a peer can come back
/// under another PeerID. A value without I/O or clock.
struct MeshPlan {
    private enum Phase {
        /// Nothing is done before this moment.
        case waiting(until: Moment)
        /// A peer was asked for an introduction, and has until this moment to answer.
        case asked(PeerID, until: Moment)
        /// The peer is being invited, after an introduction by this one.
        case inviting(PeerID)
    }

    private struct Wanted {
        var phase: Phase
        var failures = 0
        /// Whether it is not wanted any more, although its invitation goes on.
        var isForgotten = false
    }

    /// The failures of one introducer.
    private struct Record {
        /// Consecutive introductions without a conversation.
        var failures = 0
        var rests = 0
        var restsUntil = Moment(nanoseconds: .min)
    }

    /// The most peers that are asked for or invited at once.
    static let mostAtOnce = 8
    /// The consecutive introductions of one peer that may fail before it is not asked for a while.
    static let mostFailures = 16
    /// The first such rest. It doubles each time.
    static let firstRest = Moment.Span.seconds(60)
    private static let mostRests = 6
    /// The failures of all introducers together before each further one has to wait.
    static let failureBudget = 16
    /// The time after which the budget allows one more failure.
    static let failureInterval = Moment.Span.seconds(5)
    /// The most introducers whose failures are remembered.
    static let mostRecords = 1_024
    /// The time in which an introducer has to answer.
    private static let answerTime = Moment.Span.seconds(3)
    /// The pause after the first failure to reach a peer. It doubles each time.
    private static let firstPause = Moment.Span.seconds(1)
    private static let mostDoublings = 6

    private var wanted: [PeerID: Wanted] = [:]
    private var records: [PeerID: Record] = [:]
    private var generator: SeededGenerator
    /// When the failures so far will count no more: `failureInterval` for each, one after the other.
    private var failuresUntil = Moment(nanoseconds: .min)

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    /// When something is due. Early, but never late.
    var deadline: Moment {
        let isFull = underWay >= Self.mostAtOnce
        let mayFailAgain = self.mayFailAgain
        return wanted.values.reduce(.never) { earliest, wanted in
            switch wanted.phase {
            case .waiting(let until): isFull ? earliest : min(earliest, max(until, mayFailAgain))
            case .asked(_, let until): min(earliest, until)
            case .inviting: earliest
            }
        }
    }

    private var underWay: Int {
        wanted.values.count { if case .waiting = $0.phase { false } else { true } }
    }

    /// When one more peer can be asked for, so that the budget is kept even if all that is under way fails.
    private var mayFailAgain: Moment {
        let left = Self.failureBudget - 1 - underWay
        return failuresUntil + Moment.Span(nanoseconds: Self.failureInterval.nanoseconds * Int64(-left))
    }

    /// How many more peers can be asked for now.
    private func room(now: Moment) -> Int {
        let interval = Self.failureInterval.nanoseconds
        let failures = (max((failuresUntil - now).nanoseconds, 0) + interval - 1) / interval
        return min(Self.mostAtOnce, Self.failureBudget - Int(failures)) - underWay
    }

    /// Wants a peer from a moment on, if it is not wanted already. The pause before is a little random.
    mutating func want(_ id: PeerID, after pause: Moment.Span, now: Moment) {
        wanted[id]?.isForgotten = false
        guard wanted[id] == nil else { return }
        wanted[id] = Wanted(phase: .waiting(until: now + generator.jittered(pause)))
    }

    /// Wants a peer no longer. An invitation goes on until it ends, and counts until then.
    mutating func forget(_ id: PeerID) {
        if case .inviting? = wanted[id]?.phase {
            wanted[id]?.isForgotten = true
        } else {
            wanted[id] = nil
        }
    }

    /// Returns the peers to ask for now, each with the introducer to ask.
    ///
    /// - Parameter introducers: returns the peers that could introduce this session to a peer.
    mutating func takeDue(
        now: Moment, introducers: (PeerID) -> [PeerID]
    ) -> [(peer: PeerID, introducer: PeerID)] {
        for (id, entry) in wanted {
            if case .asked(_, let until) = entry.phase, until <= now { pause(id, now: now) }
        }
        var due: [(PeerID, PeerID)] = []
        var room = room(now: now)
        for (id, entry) in waiting(now: now) where room > 0 {
            let all = introducers(id)
            let able = all.filter { (records[$0]?.restsUntil ?? now) <= now }
            guard !able.isEmpty else {
                let next = all.compactMap { records[$0]?.restsUntil }.min() ?? now
                wanted[id]?.phase = .waiting(until: max(next, now + Self.firstPause))
                continue
            }
            // Another one after each failure.
            let introducer = able[entry.failures % able.count]
            wanted[id]?.phase = .asked(introducer, until: now + Self.answerTime)
            due.append((id, introducer))
            room -= 1
        }
        return due
    }

    private func waiting(now: Moment) -> [(PeerID, Wanted)] {
        let due = wanted.compactMap { id, entry -> (PeerID, Wanted, Moment)? in
            guard case .waiting(let until) = entry.phase, until <= now else { return nil }
            return (id, entry, until)
        }
        return due.sorted { ($0.2, $0.0) < ($1.2, $1.0) }.map { ($0.0, $0.1) }
    }

    /// Takes the answer of an introducer. Returns false if it was not asked.
    mutating func introduced(_ id: PeerID, by introducer: PeerID) -> Bool {
        guard case .asked(let asked, _)? = wanted[id]?.phase, asked == introducer else { return false }
        wanted[id]?.phase = .inviting(introducer)
        return true
    }

    /// Takes the end of an invitation. Returns whether this plan had begun it.
    mutating func ended(_ id: PeerID, hasFailed: Bool, now: Moment) -> Bool {
        guard case .inviting(let introducer)? = wanted[id]?.phase else { return false }
        guard hasFailed else {
            wanted[id] = nil
            records[introducer] = nil
            return true
        }
        var record = records[introducer] ?? Record()
        record.failures += 1
        if record.failures >= Self.mostFailures {
            record.failures = 0
            record.restsUntil =
                now
                + Moment.Span(nanoseconds: Self.firstRest.nanoseconds << min(record.rests, Self.mostRests))
            record.rests += 1
        }
        records[introducer] = record
        forgetOldRecords()
        failuresUntil = max(failuresUntil, now) + Self.failureInterval
        if wanted[id]?.isForgotten == true { wanted[id] = nil } else { pause(id, now: now) }
        return true
    }

    /// Keeps the records of a bounded number of introducers: those whose rests end last.
    private mutating func forgetOldRecords() {
        guard records.count > Self.mostRecords else { return }
        let oldest = records.min { ($0.value.restsUntil, $0.key) < ($1.value.restsUntil, $1.key) }
        if let oldest { records[oldest.key] = nil }
    }

    private mutating func pause(_ id: PeerID, now: Moment) {
        guard var entry = wanted[id] else { return }
        let pause = Moment.Span(
            nanoseconds: Self.firstPause.nanoseconds << min(entry.failures, Self.mostDoublings))
        entry.failures += 1
        entry.phase = .waiting(until: now + generator.jittered(pause))
        wanted[id] = entry
    }
}
