import JSONText
import Measuring
import Nigh
import NighCore

/// Lets guests in, sees to what they came for, and tells of it.
///
/// `@unchecked Sendable`: touched on the session's loop alone; `sumUp` is called when that has ended.
final class HostKeeper: @unchecked Sendable {
    static let host = Results.Kind("host", plural: "hosts")
    static let listening = Results.Kind("listening", plural: "listening")
    static let guest = Results.Kind("guest", plural: "guests")
    static let run = Results.Kind("run", plural: "runs")

    private struct Guest {
        let peer: Peer
        let purpose: Purpose
        let cameAt: Moment
        var runs = 0
    }

    /// So many items are told as one object of JSON, which has to be kept until the end; more are not told there.
    private static let mostItemsKept = 1_000
    /// How long whoever is told to come later is asked to wait.
    private static let pauseWhenBusy = Duration.seconds(5)
    /// For how long transports may be down before it is believed that none will work.
    private static let patienceWithGround = Moment.Span.seconds(1)

    private let mine: CommandSession
    private let isOnce: Bool
    private let results: Results
    private var expected: [PeerID: Purpose] = [:]
    private var guests: [PeerID: Guest] = [:]
    // Looked at for each message, and not checked for overlapping access then.
    @exclusivity(unchecked) private var bench: (guest: PeerID, host: BenchHost)?
    private var counts: [Purpose: Int] = [:]
    private var runCount = 0
    private var itemsKept = 0
    private var itemsLeftOut = 0
    private var isDone = false
    private var fault: (any Error)?
    private var whenDone: (@Sendable () -> Void)?

    private var loop: UVEventLoop { mine.loop }

    init(_ mine: CommandSession, isOnce: Bool, results: Results) {
        self.mine = mine
        self.isOnce = isOnce
        self.results = results
    }

    /// Waits until it is over; returns why, where that is a fault.
    func untilDone() async -> (any Error)? {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                if isDone { return continuation.resume() }
                whenDone = { continuation.resume() }
                loop.schedule(at: loop.now + Self.patienceWithGround) { [self] in
                    if let groundlessness = mine.groundlessness { end(groundlessness) }
                }
            }
        }
        return await mine.onLoop { [self] _ in fault }
    }

    /// Ends it in good order. From any thread.
    func finish() { loop.execute { [self] in end(nil) } }

    private func end(_ fault: (any Error)?) {
        guard !isDone else { return }
        isDone = true
        self.fault = fault
        for guest in guests.keys.sorted() { leave(guest, cause: nil) }
        whenDone?()
        whenDone = nil
    }

    // MARK: Events

    func took(_ event: SessionEvent) {
        guard !isDone else { return }
        switch event {
        case .listening(let scheme, let addresses): tellAddresses(scheme, addresses)
        case .invited(let invitation): answer(invitation)
        case .invitationEnded(let invitation, _): expected[invitation.peer.id] = nil
        case .stateChanged(let peer, let before, let cause):
            switch peer.state {
            case .connected where before == .connecting: come(peer)
            case .connected: tell(peer.id, "reconnected", words: "is back, over \(peer.transport ?? "?")")
            case .reconnecting: tell(peer.id, "reconnecting", cause: cause, words: "has lost its link")
            case .disconnected: leave(peer.id, cause: cause)
            case .available, .unavailable: expected[peer.id] = nil
            default: break
            }
        case .transportFailed(let error): results.remark("\(error)")
        default: break
        }
    }

    @inline(__always)
    func take(_ bytes: RawSpan, _ origin: MessageOrigin) {
        if let bench, bench.guest == origin.peer { return bench.host.take(bytes, origin) }
        refuse(origin.peer)
    }

    /// Who came to ping has nothing to say.
    private func refuse(_ peer: PeerID) {
        guard guests[peer] != nil, !isDone else { return }
        dismiss(peer, BenchBreach("a message of somebody who came to ping"))
    }

    private func tellAddresses(_ scheme: String, _ addresses: [TransportAddress]) {
        guard !addresses.isEmpty else { return }
        keep(
            Self.listening,
            [
                .init("transport", .text(scheme)),
                .init("addresses", .list(addresses.map { .text($0.description) })),
            ], words: addresses.map { Line("  reached at ", .faint) + Line($0.description) })
    }

    private func answer(_ invitation: Invitation) {
        guard let purpose = Purpose(context: invitation.context) else { return }
        if purpose == .bench, let busy = bench?.guest ?? expected.first(where: { $0.value == .bench })?.key,
            busy != invitation.peer.id
        {
            // Whoever has lost their link may never come back, and must not keep others waiting.
            if guests[busy] != nil, mine.peers[busy]?.state != .connected {
                dismiss(busy, BenchBreach("somebody else wants to measure, and its link is lost"))
            } else {
                let name = mine.peers[busy]?.name.description ?? busy.short
                return mine.session.decline(
                    invitation, words: "\(name) is measuring here now; try again when that is over",
                    retryAfter: Self.pauseWhenBusy)
            }
        }
        expected[invitation.peer.id] = purpose
        mine.session.accept(invitation)
    }

    private func come(_ peer: Peer) {
        guard let purpose = expected.removeValue(forKey: peer.id) else {
            return mine.session.disconnect(peer.id)
        }
        guests[peer.id] = Guest(peer: peer, purpose: purpose, cameAt: loop.now)
        counts[purpose, default: 0] += 1
        tell(peer.id, "came", words: "is here for \(purpose.counterpart), over \(peer.transport ?? "?")")
        guard purpose == .bench else { return }
        bench?.host.stop()
        let host = BenchHost(
            mine.session, loop: loop, guest: peer.id,
            whenMeasured: { [unowned self] in measured($0, for: peer.id) },
            whenFailed: { [unowned self] in dismiss(peer.id, $0) })
        bench = (peer.id, host)
    }

    /// Ends the conversation with somebody who cannot be dealt with.
    private func dismiss(_ peer: PeerID, _ error: any Error) {
        if let guest = guests[peer] {
            results.remark("\(guest.peer.name) (\(peer.short)) is sent away: \(error)")
        }
        leave(peer, cause: nil, why: "sent away: \(error)")
        mine.session.disconnect(peer)
    }

    private func leave(_ id: PeerID, cause: NighError?, why: String? = nil) {
        guard let guest = guests[id] else { return }
        if bench?.guest == id {
            bench?.host.stop()
            bench = nil
        }
        let stay = loop.now - guest.cameAt
        let deed = guest.purpose == .bench ? "\(guest.runs) runs measured" : "came to ping"
        let reason = why ?? cause.map { "\($0.cause)" }
        tell(
            id, "left", cause: cause,
            more: [
                .init("stayed_seconds", .number(stay.milliseconds / 1_000)),
                .init("runs", .integer(guest.runs)),
            ],
            words: "has left after \(Figures.span(nanoseconds: Double(stay.nanoseconds))): \(deed)"
                + (reason.map { " (\($0))" } ?? ""))
        guests[id] = nil
        if isOnce { end(nil) }
    }

    private func measured(_ run: BenchHost.Run, for id: PeerID) {
        guests[id]?.runs += 1
        runCount += 1
        guard let guest = guests[id] else { return }
        let rates = [("up", run.up), ("down", run.down)].compactMap { name, count in
            count.map { "\(name) \(Figures.rate($0.rate))" }
        }
        keep(
            Self.run,
            [
                .init("peer", .object(PingErrand.members(of: guest.peer))),
                .init("run", .integer(Int(run.order.run))),
                .init("direction", .text(run.order.direction.rawValue)),
                .init("size", .integer(Int(run.order.size))),
                .init("up", run.up.map(\.json) ?? .null), .init("down", run.down.map(\.json) ?? .null),
            ],
            words: [
                Line("\(guest.peer.name)", .strong)
                    + Line(" measured \(Figures.size(Int(run.order.size))): \(rates.joined(separator: ", "))")
            ])
    }

    // MARK: Telling

    private func tell(
        _ id: PeerID, _ change: String, cause: NighError? = nil, more: [JSON.Member] = [], words: String
    ) {
        guard let guest = guests[id] else { return }
        var peer = PingErrand.members(of: mine.peers[id] ?? guest.peer)
        peer.append(.init("purpose", .text(guest.purpose.rawValue)))
        keep(
            Self.guest,
            [
                .init("change", .text(change)), .init("peer", .object(peer)),
                .init("cause", JSON(cause?.cause.label)),
            ] + more,
            words: [Line("\(guest.peer.name)", .strong) + Line(" (\(id.short)) ", .faint) + Line(words)])
    }

    private func keep(_ kind: Results.Kind, _ members: [JSON.Member], words: [Line]) {
        if results.form == .json {
            guard itemsKept < Self.mostItemsKept else { return itemsLeftOut += 1 }
            itemsKept += 1
        }
        results.tell(kind, members, words: words)
    }

    /// Tells how it all came out.
    func sumUp() -> ExitStatus {
        let (pings, benches) = (counts[.ping] ?? 0, counts[.bench] ?? 0)
        results.sumUp(
            [
                .init("pinged_by", .integer(pings)), .init("measured_by", .integer(benches)),
                .init("runs_measured", .integer(runCount)), .init("items_left_out", .integer(itemsLeftOut)),
            ],
            words: [Line("\(pings) came to ping, \(benches) to measure (\(runCount) runs)")])
        return .well
    }
}

extension BenchCount {
    /// As it is told.
    var json: JSON {
        [
            "messages": .integer(Int(clamping: amount.messages)),
            "bytes": .integer(Int(clamping: amount.bytes)),
            "seconds": .number(Double(nanoseconds) / 1e9), "bytes_per_second": .number(rate.rounded()),
            "messages_per_second": .number(frequency.rounded()),
        ]
    }
}
