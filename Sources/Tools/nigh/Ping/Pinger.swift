import JSONText
import Measuring
import Nigh
import NighCore

/// Pings one peer, tells of each reply and loss, and comes back to a peer whose conversation has ended.
///
/// Everything happens on the session's loop. `@unchecked Sendable`: what changes is touched there alone.
final class Pinger: @unchecked Sendable {
    static let reply = Results.Kind("reply", plural: "replies")
    static let loss = Results.Kind("loss", plural: "losses_told")
    static let change = Results.Kind("change", plural: "changes")
    static let kinds = [reply, loss, change]

    /// So many items are told as one object of JSON, which has to be kept until the end; more are not told there.
    static let mostItemsKept = 1_000
    /// What is shown at a terminal is drawn no more often.
    private static let pauseBetweenDrawings = Moment.Span.milliseconds(100)
    /// Before the next ping, where one follows the other and one was lost.
    private static let pauseAfterFailure = Moment.Span.milliseconds(250)
    private static let patienceWithInvitation = Duration.seconds(10)

    private let mine: CommandSession
    private let choice: PeerChoice
    private let plan: PingPlan
    private let results: Results
    private let payload: [UInt8]

    private var peer: Peer?
    private var tally = PingTally()
    private var underWay: [Int: LoopTimer] = [:]
    private var isAfterReconnect = false
    private var nextAt = Moment.never
    private var itemsKept = 0
    private(set) var itemsLeftOut = 0
    private var drawnAt: Moment?
    private var isRejoining = false
    /// When a peer that is gone is called again.
    private var calls = RepeatedCall(from: .never, until: .never)
    /// Until then it is not.
    private var callTimer: LoopTimer?
    private var isFinished = false
    private var whenDone: (@Sendable (PingTally) -> Void)?

    private var loop: UVEventLoop { mine.loop }

    init(_ mine: CommandSession, choice: PeerChoice, plan: PingPlan, results: Results) {
        self.mine = mine
        self.choice = choice
        self.plan = plan
        self.results = results
        payload = (0..<plan.size).map { UInt8(truncatingIfNeeded: $0) }
    }

    /// Pings `peer`, with whom there is a conversation, until all that was planned is answered or lost, or `finish` is called.
    func run(with peer: Peer) async -> PingTally {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                guard !isFinished else { return continuation.resume(returning: tally) }
                whenDone = { continuation.resume(returning: $0) }
                // What has happened since it was found is in the session's own list.
                self.peer = mine.peers[peer.id] ?? peer
                nextAt = loop.now
                sendNext()
            }
        }
    }

    /// Ends it; what is under way counts as not sent. From any thread.
    func finish() { loop.execute { [self] in finishNow() } }

    private func finishNow() {
        guard !isFinished else { return }
        isFinished = true
        tally.forgetWhatIsUnderWay()
        whenDone?(tally)
        whenDone = nil
    }

    // MARK: Asking

    private func sendNext() {
        guard !isFinished, tally.sent < plan.count ?? .max else { return }
        tally.send()
        let number = tally.sent
        if plan.interval > .zero {
            // Where the loop was held up, what was missed is not made up for all at once.
            nextAt = max(nextAt + Moment.Span(plan.interval), loop.now)
            if number < plan.count ?? .max { loop.schedule(at: nextAt) { [self] in sendNext() } }
        }
        guard let peer, peer.state == .connected else {
            return lose(number, by: peer?.state == .reconnecting ? .noLink : .noPeer)
        }
        underWay[number] = loop.schedule(at: loop.now + Moment.Span(plan.timeout)) { [self] in
            underWay[number] = nil
            lose(number, by: .timeout)
        }
        mine.session.ping(peer.id, payload: payload) { [self] result in
            switch result {
            case .success(let roundTrip): receive(number, after: roundTrip)
            case .failure(let error):
                guard let timer = underWay.removeValue(forKey: number) else { return }
                loop.cancel(timer)
                lose(number, by: PingTally.Loss(error.cause))
            }
        }
    }

    private func receive(_ number: Int, after roundTrip: Duration) {
        guard !isFinished else { return }
        guard let timer = underWay.removeValue(forKey: number) else { return tally.receiveLate() }
        loop.cancel(timer)
        let transport = peer?.transport ?? "?"
        tally.receive(after: roundTrip, over: transport)
        if !plan.isQuiet {
            tell(
                Self.reply,
                [
                    .init("number", .integer(number)),
                    .init(
                        "round_trip_ms",
                        Figures.json(nanoseconds: Double(Moment.Span(roundTrip).nanoseconds))),
                    .init("transport", .text(transport)), .init("after_reconnect", .bool(isAfterReconnect)),
                ],
                Line("#\(number)  ", .faint)
                    + Line(Figures.span(nanoseconds: Double(Moment.Span(roundTrip).nanoseconds)))
                    + Line("  \(transport)", .faint)
                    + Line(isAfterReconnect ? "  the first after a reconnect" : "", .doubtful))
        }
        isAfterReconnect = false
        decided(wasLost: false)
    }

    private func lose(_ number: Int, by loss: PingTally.Loss) {
        guard !isFinished else { return }
        tally.lose(by: loss)
        if !plan.isQuiet {
            tell(
                Self.loss, [.init("number", .integer(number)), .init("reason", .text(loss.rawValue))],
                Line("#\(number)  ", .faint) + Line("lost: \(loss.words)", .bad))
        }
        decided(wasLost: true)
    }

    private func decided(wasLost: Bool) {
        draw()
        if plan.endsWithReply, !wasLost { return finishNow() }
        if tally.sent == plan.count, underWay.isEmpty { return finishNow() }
        guard plan.interval == .zero else { return }
        if wasLost {
            loop.schedule(at: loop.now + Self.pauseAfterFailure) { [self] in sendNext() }
        } else {
            sendNext()
        }
    }

    // MARK: What happens to the conversation

    /// An event of the session; on its loop.
    func took(_ event: SessionEvent) {
        switch event {
        case .stateChanged(let peer, let before, let cause) where peer.id == self.peer?.id:
            self.peer = peer
            guard !isFinished else { return }
            moved(peer, from: before, cause: cause)
            rejoinSooner()
        case .peerChanged(let peer) where peer.id == self.peer?.id:
            let before = self.peer?.transport
            self.peer = peer
            if !isFinished, peer.state == .connected, let transport = peer.transport, transport != before {
                tellChange("moved", to: peer, words: "it goes on over \(transport)")
            }
            rejoinSooner()
        default: break
        }
    }

    private func moved(_ peer: Peer, from before: PeerState, cause: NighError?) {
        switch peer.state {
        case .reconnecting:
            tellChange(
                "reconnecting", to: peer, cause: cause,
                words: "the link is lost\(reason(cause)); another is looked for")
        case .connected where before == .reconnecting:
            tally.reconnects += 1
            isAfterReconnect = true
            tellChange("reconnected", to: peer, words: "there is a link again, over \(peer.transport ?? "?")")
        case .disconnected:
            tellChange("gone", to: peer, cause: cause, words: "the conversation is over\(reason(cause))")
            calls = RepeatedCall(from: loop.now, until: .never)
            rejoin()
        default: break
        }
    }

    private func reason(_ cause: NighError?) -> String { cause.map { " (\($0.cause))" } ?? "" }

    /// Asks for another conversation until there is one.
    private func rejoin() {
        guard !isRejoining, !isFinished, let peer else { return }
        isRejoining = true
        calls.begins(along: addresses(of: peer), at: loop.now)
        let done: @Sendable (Result<PeerID, NighError>) -> Void = { [self] in rejoined($0) }
        let context = Purpose.ping.context
        // After what is going on now: the session is just telling that the one before has ended.
        loop.execute { [self] in
            if case .address(let address) = choice {
                mine.session.invite(
                    at: address, context: context, timeout: Self.patienceWithInvitation, whenDone: done)
            } else {
                mine.session.invite(
                    peer.id, context: context, timeout: Self.patienceWithInvitation, whenDone: done)
            }
        }
    }

    /// The routes that discovery shows to a named peer. Empty for an address, which is called itself.
    private func addresses(of peer: Peer) -> [TransportAddress] {
        if case .address = choice { [] } else { peer.routes.map(\.address) }
    }

    /// Waits no longer where there is another way to the peer.
    private func rejoinSooner() {
        guard let peer, let sooner = calls.nextCall(along: addresses(of: peer), at: loop.now),
            callTimer != nil
        else { return }
        rejoin(at: sooner)
    }

    private func rejoin(at moment: Moment) {
        if let callTimer { loop.cancel(callTimer) }
        callTimer = loop.schedule(at: moment) { [self] in
            callTimer = nil
            rejoin()
        }
    }

    private func rejoined(_ result: Result<PeerID, NighError>) {
        isRejoining = false
        guard !isFinished else { return }
        guard case .success(let id) = result, let peer = mine.peers[id] else {
            var next: Moment?
            if case .failure(let error) = result { next = calls.nextCall(after: error, at: loop.now) }
            // Also after a no: whoever says it may be somebody else by then.
            return rejoin(at: next ?? loop.now + calls.pause())
        }
        self.peer = peer
        tally.rejoins += 1
        isAfterReconnect = true
        tellChange(
            "rejoined", to: peer,
            words: "\(peer.name) is back, over \(peer.transport ?? "?"): another conversation has begun")
    }

    // MARK: Telling

    private func tellChange(_ change: String, to peer: Peer, cause: NighError? = nil, words: String) {
        tell(
            Self.change,
            [
                .init("change", .text(change)), .init("transport", JSON(peer.transport)),
                .init("cause", JSON(cause?.cause.label)),
            ], Line(words, .doubtful))
    }

    private func tell(_ kind: Results.Kind, _ members: [JSON.Member], _ words: Line) {
        if results.form == .json {
            guard itemsKept < Self.mostItemsKept else { return itemsLeftOut += 1 }
            itemsKept += 1
        }
        results.tell(kind, members, words: [words])
    }

    private func draw() {
        guard results.live.isSeen, let peer else { return }
        if let drawnAt, loop.now < drawnAt + Self.pauseBetweenDrawings { return }
        drawnAt = loop.now
        results.live.show(
            [""] + LiveHistogram.lines(of: tally.roundTrips.histogram) + tally.words(about: peer))
    }
}

extension PingTally.Loss {
    /// Why the session has no answer to a ping.
    init(_ cause: NighError.Cause) {
        switch cause {
        case .notConnected: self = .noLink
        case .limit: self = .tooMany
        default: self = .linkLost
        }
    }
}
