import JSONText
import Measuring
import NighLoop
import NighCore

/// Pings one peer, reports each reply and loss, and starts a new conversation when the current one has ended.
///
/// `@unchecked Sendable`: all mutable state is used on the session's loop only.
final class Pinger: @unchecked Sendable {
    static let reply = Results.Kind("reply", plural: "replies")
    static let loss = Results.Kind("loss", plural: "losses_told")
    static let change = Results.Kind("change", plural: "changes")

    /// The maximum number of items in one JSON object, whose items are kept until the end. Further items are only
    /// counted.
    static let mostItemsKept = 1_000
    /// The minimum time between two drawings on a terminal.
    private static let pauseBetweenDrawings = Moment.Span.milliseconds(100)
    /// The pause after a lost ping if the interval is zero.
    private static let pauseAfterFailure = Moment.Span.milliseconds(250)
    private static let invitationTimeout = Duration.seconds(10)

    private let commandSession: CommandSession
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
    /// Decides when a peer that is gone is called again.
    private var calls = RetrySchedule(from: .never, until: .never)
    /// The timer of the next call.
    private var callTimer: LoopTimer?
    private var isFinished = false
    private var whenDone: (@Sendable (PingTally) -> Void)?

    private var loop: UVEventLoop { commandSession.loop }

    init(_ commandSession: CommandSession, choice: PeerChoice, plan: PingPlan, results: Results) {
        self.commandSession = commandSession
        self.choice = choice
        self.plan = plan
        self.results = results
        payload = (0..<plan.size).map { UInt8(truncatingIfNeeded: $0) }
    }

    /// Pings `peer`, with which there is a conversation. Returns when all planned pings are answered or lost, or after
    /// `finish`.
    func run(with peer: Peer) async -> PingTally {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                guard !isFinished else { return continuation.resume(returning: tally) }
                whenDone = { continuation.resume(returning: $0) }
                // The session's own list is newer than the result of the search.
                self.peer = commandSession.peers[peer.id] ?? peer
                nextAt = loop.now
                if commandSession.peers[peer.id]?.state.hasConversation != true {
                    // It has left before its events were followed.
                    calls = RetrySchedule(from: loop.now, until: .never)
                    rejoin()
                }
                sendNext()
            }
        }
    }

    /// Ends the measurement; pings under way count as not sent. Callable from any thread.
    func finish() { loop.execute { [self] in finishNow() } }

    private func finishNow() {
        guard !isFinished else { return }
        isFinished = true
        tally.discardPending()
        whenDone?(tally)
        whenDone = nil
    }

    // MARK: Pings

    private func sendNext() {
        guard !isFinished, tally.sent < plan.count ?? .max else { return }
        tally.send()
        let number = tally.sent
        if plan.interval > .zero {
            // If the loop was held up, the missed pings are not sent all at once.
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
        commandSession.session.ping(peer.id, over: plan.path, payload: payload) { [self] result in
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
        tally.receive(number, after: roundTrip, over: transport)
        if !results.isQuiet {
            report(
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
                    + Line(isAfterReconnect ? "  the first after a reconnect" : "", .warning))
        }
        isAfterReconnect = false
        finished(wasLost: false)
    }

    private func lose(_ number: Int, by loss: PingTally.Loss) {
        guard !isFinished else { return }
        tally.lose(by: loss)
        if !results.isQuiet {
            report(
                Self.loss, [.init("number", .integer(number)), .init("reason", .text(loss.rawValue))],
                Line("#\(number)  ", .faint) + Line("lost: \(loss.text)", .bad))
        }
        finished(wasLost: true)
    }

    private func finished(wasLost: Bool) {
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

    // MARK: The conversation

    /// Handles an event of the session. Loop only.
    func handle(_ event: SessionEvent) {
        if let changed = event.stateChange?.peer, changed == peer {
            peer = changed
            guard !isFinished else { return }
            stateChanged(event)
            return rejoinSooner()
        }
        switch event {
        case .peerChanged(let peer) where peer.id == self.peer?.id:
            let before = self.peer?.transport
            self.peer = peer
            if !isFinished, peer.state == .connected, peer.transport != nil, peer.transport != before {
                reportChange(
                    "moved", to: peer,
                    text: "the conversation moved, and runs \(commandSession.wholePath(to: peer))")
            }
            rejoinSooner()
        default: break
        }
    }

    private func stateChanged(_ event: SessionEvent) {
        switch event {
        case .reconnecting(let peer, let cause):
            reportChange(
                "reconnecting", to: peer, cause: cause,
                text: "the link is lost\(reason(cause)); looking for another")
        case .reconnected(let peer):
            tally.reconnects += 1
            isAfterReconnect = true
            reportChange("reconnected", to: peer, text: "reconnected \(commandSession.wholePath(to: peer))")
        case .disconnected(let peer, let cause):
            reportChange("gone", to: peer, cause: cause, text: "the conversation has ended\(reason(cause))")
            calls = RetrySchedule(from: loop.now, until: .never)
            rejoin()
        default: break
        }
    }

    private func reason(_ cause: NighError) -> String { " (\(cause.cause))" }

    /// Invites the peer again. After a failure, `rejoined` schedules the next invitation.
    private func rejoin() {
        guard !isRejoining, !isFinished, let peer else { return }
        isRejoining = true
        calls.callStarted(along: addresses(of: peer), at: loop.now)
        let done: @Sendable (Result<PeerID, NighError>) -> Void = { [self] in rejoined($0) }
        let context = InvitationPurpose.ping.context
        // In a later turn: the session is still reporting the end of the previous conversation.
        loop.execute { [self] in
            if case .address(let address) = choice {
                commandSession.session.invite(
                    at: address, context: context, timeout: Self.invitationTimeout, completion: done)
            } else {
                commandSession.session.invite(
                    peer.id, context: context, timeout: Self.invitationTimeout, completion: done)
            }
        }
    }

    /// The routes that discovery sees to a peer that was chosen by name. Empty for an address, which is dialled
    /// directly.
    private func addresses(of peer: Peer) -> [TransportAddress] {
        if case .address = choice { [] } else { peer.routes.map(\.address) }
    }

    /// Calls earlier if discovery sees another route to the peer.
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
        guard case .success(let id) = result, let peer = commandSession.peers[id] else {
            var next: Moment?
            if case .failure(let error) = result { next = calls.nextCall(after: error, at: loop.now) }
            // Call again even after a refusal: another peer may answer by then.
            return rejoin(at: next ?? loop.now + calls.pause())
        }
        self.peer = peer
        tally.rejoins += 1
        isAfterReconnect = true
        reportChange(
            "rejoined", to: peer,
            text: "\(peer.name) is back, \(commandSession.wholePath(to: peer)), in a new conversation")
    }

    // MARK: Reporting

    private func reportChange(_ change: String, to peer: Peer, cause: NighError? = nil, text: String) {
        report(
            Self.change,
            [
                .init("change", .text(change)), .init("transport", JSON(peer.transport)),
                .init("through", JSON(commandSession.carrier(of: peer).map { "\($0)" })),
                .init("cause", JSON(cause?.cause.label)),
            ], Line(text, .warning))
    }

    private func report(_ kind: Results.Kind, _ members: [JSON.Member], _ line: Line) {
        if results.form == .json {
            guard itemsKept < Self.mostItemsKept else { return itemsLeftOut += 1 }
            itemsKept += 1
        }
        results.report(kind, members, lines: [line])
    }

    private func draw() {
        guard results.live.isVisible, let peer else { return }
        if let drawnAt, loop.now < drawnAt + Self.pauseBetweenDrawings { return }
        drawnAt = loop.now
        results.live.show(
            [""] + LiveHistogram.lines(of: tally.roundTrips.histogram) + tally.lines(about: peer))
    }
}

extension PingTally.Loss {
    /// Creates the reason for a loss from the cause with which the session failed the ping.
    init(_ cause: NighError.Cause) {
        switch cause {
        case .notConnected: self = .noLink
        case .timedOut: self = .timeout
        case .unreachable: self = .blocked
        case .limit: self = .tooMany
        default: self = .linkLost
        }
    }
}
