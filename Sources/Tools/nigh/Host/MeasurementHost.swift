import JSONText
import Measuring
import NighLoop
import NighCore

/// Accepts guests, answers their measurements, and reports both.
///
/// `@unchecked Sendable`: used on the session's loop only; `summarize` is called after the loop has ended.
final class MeasurementHost: @unchecked Sendable {
    static let host = Results.Kind("host", plural: "hosts")
    static let listening = Results.Kind("listening", plural: "listening")
    static let guest = Results.Kind("guest", plural: "guests")
    static let run = Results.Kind("run", plural: "runs")

    private struct Guest {
        let peer: Peer
        let purpose: InvitationPurpose
        let joinedAt: Moment
        var runs = 0
    }

    /// The maximum number of items in one JSON object, whose items are kept until the end. Further items are only
    /// counted.
    private static let maximumItems = 1_000
    /// The retry delay for a guest that is declined because the host is busy.
    private static let retryDelay = Duration.seconds(5)

    private let commandSession: CommandSession
    private let isOnce: Bool
    private let results: Results
    private var expected: [PeerID: InvitationPurpose] = [:]
    private var guests: [PeerID: Guest] = [:]
    private var bench: (guest: PeerID, host: BenchHost)?
    private var counts: [InvitationPurpose: Int] = [:]
    private var runCount = 0
    private var itemsKept = 0
    private var itemsLeftOut = 0
    private var isDone = false
    private var fault: (any Error)?
    private var whenDone: (@Sendable () -> Void)?

    private var loop: UVEventLoop { commandSession.loop }

    init(_ commandSession: CommandSession, isOnce: Bool, results: Results) {
        self.commandSession = commandSession
        self.isOnce = isOnce
        self.results = results
    }

    /// Waits until the command is over. Returns the error that ended it, if one did.
    func waitUntilDone() async -> (any Error)? {
        let loss = Task {
            guard let unusable = await commandSession.unusableTransports() else { return }
            loop.execute { [self] in end(unusable) }
        }
        defer { loss.cancel() }
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                if isDone { return continuation.resume() }
                whenDone = { continuation.resume() }
            }
        }
        return await commandSession.onLoop { [self] _ in fault }
    }

    /// Ends the command in good order. Callable from any thread.
    func finish() { loop.execute { [self] in end(nil) } }

    private func end(_ fault: (any Error)?) {
        guard !isDone else { return }
        isDone = true
        self.fault = fault
        for guest in guests.keys.sorted() { remove(guest, cause: nil) }
        whenDone?()
        whenDone = nil
    }

    // MARK: Events

    func handle(_ event: SessionEvent) {
        guard !isDone else { return }
        switch event {
        case .listening(let scheme, let addresses): reportAddresses(scheme, addresses)
        case .invited(let invitation): answer(invitation)
        case .invitationEnded(let invitation, _): expected[invitation.peer.id] = nil
        case .connected(let peer): admit(peer)
        case .reconnected(let peer):
            report(peer.id, "reconnected", text: "is back, over \(peer.transport ?? "?")")
        case .reconnecting(let peer, let cause):
            report(peer.id, "reconnecting", cause: cause, text: "has lost its link")
        case .disconnected(let peer, let cause): remove(peer.id, cause: cause)
        case .peerFound(let peer), .available(let peer, _), .peerLost(let peer): expected[peer.id] = nil
        default: break
        }
    }

    @inline(__always)
    func receive(_ bytes: RawSpan, _ origin: MessageOrigin) {
        if let bench, bench.guest == origin.peer { return bench.host.receive(bytes, origin) }
        refuse(origin.peer)
    }

    /// Dismisses a guest that did not come to measure throughput and has sent a message.
    private func refuse(_ peer: PeerID) {
        guard guests[peer] != nil, !isDone else { return }
        dismiss(peer, BenchBreach("a message from a guest that does not measure throughput"))
    }

    private func reportAddresses(_ scheme: String, _ addresses: [TransportAddress]) {
        guard !addresses.isEmpty else { return }
        reportItem(
            Self.listening,
            [
                .init("transport", .text(scheme)),
                .init("addresses", .list(addresses.map { .text($0.description) })),
            ], lines: addresses.map { Line("  reached at ", .faint) + Line($0.description) })
    }

    private func answer(_ invitation: Invitation) {
        guard let purpose = InvitationPurpose(context: invitation.context) else { return }
        if purpose == .bench, let busy = bench?.guest ?? expected.first(where: { $0.value == .bench })?.key,
            busy != invitation.peer.id
        {
            // A guest that has lost its link may never come back, and must not keep others waiting.
            if guests[busy] != nil, commandSession.peers[busy]?.state != .connected {
                dismiss(busy, BenchBreach("its link is lost, and another guest wants to measure"))
            } else {
                let name = commandSession.peers[busy]?.name.description ?? busy.short
                return invitation.decline(
                    because: "\(name) is measuring here now; try again when that is over",
                    retryAfter: Self.retryDelay)
            }
        }
        expected[invitation.peer.id] = purpose
        invitation.accept()
    }

    private func admit(_ peer: Peer) {
        guard let purpose = expected.removeValue(forKey: peer.id) else {
            // Otherwise it may be the peer that `--through` names, which this session has invited.
            if !commandSession.hasThrough { commandSession.session.disconnect(peer.id) }
            return
        }
        guests[peer.id] = Guest(peer: peer, purpose: purpose, joinedAt: loop.now)
        counts[purpose, default: 0] += 1
        report(
            peer.id, "came", text: "is connected \(Self.words(for: purpose)), over \(peer.transport ?? "?")")
        guard purpose == .bench else { return }
        bench?.host.stop()
        let host = BenchHost(
            commandSession.session, loop: loop, guest: peer.id,
            whenMeasured: { [unowned self] in measured($0, for: peer.id) },
            whenFailed: { [unowned self] in dismiss(peer.id, $0) })
        bench = (peer.id, host)
    }

    private static func words(for purpose: InvitationPurpose) -> String {
        purpose == .join ? "to see or to reach others" : "for \(purpose.counterpart)"
    }

    /// Ends the conversation with a guest because of `error`.
    private func dismiss(_ peer: PeerID, _ error: any Error) {
        if let guest = guests[peer] {
            results.remark("\(guest.peer.name) (\(guest.peer.identity.short)) is disconnected: \(error)")
        }
        remove(peer, cause: nil, why: "disconnected: \(error)")
        commandSession.session.disconnect(peer)
    }

    private func remove(_ id: PeerID, cause: NighError?, why: String? = nil) {
        guard let guest = guests[id] else { return }
        if bench?.guest == id {
            bench?.host.stop()
            bench = nil
        }
        let stay = loop.now - guest.joinedAt
        let activity =
            switch guest.purpose {
            case .bench: "\(guest.runs) runs measured"
            case .join: "it came to see or to reach others"
            default: "it came to ping"
            }
        let reason = why ?? cause.map { "\($0.cause)" }
        report(
            id, "left", cause: cause,
            more: [
                .init("stayed_seconds", .number(stay.milliseconds / 1_000)),
                .init("runs", .integer(guest.runs)),
            ],
            text: "has left after \(Figures.span(nanoseconds: Double(stay.nanoseconds))): \(activity)"
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
        reportItem(
            Self.run,
            [
                .init("peer", .object(PingCommand.members(of: guest.peer))),
                .init("run", .integer(Int(run.order.run))),
                .init("direction", .text(run.order.direction.rawValue)),
                .init("size", .integer(Int(run.order.size))),
                .init("up", run.up.map(\.json) ?? .null), .init("down", run.down.map(\.json) ?? .null),
            ],
            lines: [
                Line("\(guest.peer.name)", .strong)
                    + Line(" measured \(Figures.size(Int(run.order.size))): \(rates.joined(separator: ", "))")
            ])
    }

    // MARK: Reporting

    private func report(
        _ id: PeerID, _ change: String, cause: NighError? = nil, more: [JSON.Member] = [], text: String
    ) {
        guard let guest = guests[id] else { return }
        var peer = PingCommand.members(of: commandSession.peers[id] ?? guest.peer)
        peer.append(.init("purpose", .text(guest.purpose.rawValue)))
        reportItem(
            Self.guest,
            [
                .init("change", .text(change)), .init("peer", .object(peer)),
                .init("cause", JSON(cause?.cause.label)),
            ] + more,
            lines: [
                Line("\(guest.peer.name)", .strong) + Line(" (\(guest.peer.identity.short)) ", .faint)
                    + Line(text)
            ])
    }

    private func reportItem(_ kind: Results.Kind, _ members: [JSON.Member], lines: [Line]) {
        if results.form == .json {
            guard itemsKept < Self.maximumItems else { return itemsLeftOut += 1 }
            itemsKept += 1
        }
        results.report(kind, members, lines: lines)
    }

    /// Reports the summary.
    func summarize() -> ExitStatus {
        let (pings, benches, visits) = (counts[.ping] ?? 0, counts[.bench] ?? 0, counts[.join] ?? 0)
        let others = visits == 0 ? "" : ", \(visits) to see or to reach others"
        results.summarize(
            [
                .init("pinged_by", .integer(pings)), .init("measured_by", .integer(benches)),
                .init("joined_by", .integer(visits)),
                .init("runs_measured", .integer(runCount)), .init("items_left_out", .integer(itemsLeftOut)),
            ],
            lines: [
                Line("guests: \(pings) to ping, \(benches) to measure throughput (\(runCount) runs)\(others)")
            ])
        return .success
    }
}

extension BenchCount {
    var json: JSON {
        [
            "messages": .integer(Int(clamping: amount.messages)),
            "bytes": .integer(Int(clamping: amount.bytes)),
            "seconds": .number(Double(nanoseconds) / 1e9), "bytes_per_second": .number(rate.rounded()),
            "messages_per_second": .number(frequency.rounded()),
        ]
    }
}
