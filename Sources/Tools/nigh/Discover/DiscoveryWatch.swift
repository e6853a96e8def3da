import JSONText
import NighCore
import NighSystem
import SessionArguments

/// Reports peers as they come and go: each change as it happens, and at a terminal a table of all peers that is kept up
/// to date.
///
/// `@unchecked Sendable`: all mutable state is confined to the session's loop.
final class DiscoveryWatch: @unchecked Sendable {
    private let commandSession: CommandSession
    private let results: Results
    private let reportsChanges: Bool
    /// The identity that other programs of this user have; nil if there is none.
    private let own: PeerID?
    private var seen = SeenPeers()
    private var waiting: CheckedContinuation<Void, Never>?
    private var hasEnded = false
    private let startedAt: Moment

    /// The state at the end of the watch.
    struct Outcome: Sendable {
        /// The peers that were seen at the end, and for how many seconds each.
        let peers: [(members: [JSON.Member], age: Int)]
        /// The peers as a table for a person.
        let table: [Line]
        /// Whether any peer was seen at any time.
        let hasSeenAnybody: Bool
        /// The errors of the transports, if none of them works.
        let fault: TransportsUnavailable?
    }

    init(_ commandSession: CommandSession, _ results: Results, reportsChanges: Bool) {
        self.commandSession = commandSession
        self.results = results
        self.reportsChanges = reportsChanges
        startedAt = commandSession.loop.now
        own = try? IdentityFile().load(createIfMissing: false).peerID
    }

    /// Starts the session and watches for `timeout`, or until it is interrupted.
    func run(for timeout: Duration?, _ stopRequest: StopRequest) async -> Outcome {
        commandSession.start(onEvent: { [self] in handle($0) })
        commandSession.loop.execute { [self] in refresh() }
        stopRequest.onRequest { [self] in commandSession.loop.execute { [self] in end() } }
        await withCheckedContinuation { continuation in
            commandSession.loop.execute { [self] in
                if hasEnded { return continuation.resume() }
                waiting = continuation
                guard let timeout else { return }
                commandSession.loop.schedule(at: startedAt + Moment.Span(timeout)) { [self] in end() }
            }
        }
        return await commandSession.onLoop { [self] commandSession in
            Outcome(
                peers: seen.all(at: commandSession.loop.now).map { (members(of: $0.peer), $0.age) },
                table: table,
                hasSeenAnybody: seen.hasSeenAnybody, fault: commandSession.transportsUnavailable)
        }
    }

    private func end() {
        hasEnded = true
        waiting?.resume()
        waiting = nil
    }

    private func handle(_ event: SessionEvent) {
        if let peer = event.changedPeer { return update(peer) }
        switch event {
        case .transportDown(_, let error):
            // A transport that the user did not name may fail without a remark.
            if commandSession.transportsWereNamed { commandSession.remark(error) }
        case .problem(let error) where error.transport != nil && error.stage != .advertising:
            commandSession.remark(error)
        default: break
        }
    }

    private func update(_ peer: Peer) {
        guard !hasEnded, let change = seen.update(peer, at: commandSession.loop.now) else { return }
        if reportsChanges { report(change, peer) }
        show()
    }

    private func report(_ change: SeenPeers.Change, _ peer: Peer) {
        // One JSON object lists only the peers that are seen at the end: a list of all changes would grow without
        // bound.
        guard results.form != .json else { return }
        let after = (commandSession.loop.now - startedAt).milliseconds / 1_000
        let mark =
            switch change {
            case .found: Line("+ ", .good)
            case .changed: Line("~ ", .warning)
            case .lost: Line("- ", .bad)
            }
        results.report(
            DiscoverCommand.eventKind,
            [.init("event", .text(change.rawValue)), .init("after_s", .number(after))]
                + members(of: peer),
            lines: [
                mark + Line(peer.name, .strong) + "  \(peer.identity.short)  "
                    + commandSession.routes(to: peer) + "  " + PeerReport.info(of: peer)
                    + Line(peer.identity == own ? "  yours" : "", .faint)
                    + Line(introducers(to: peer).map { "  told by \($0)" } ?? "", .faint)
                    + Line(PeerWarning(peer).map { "  \($0.sentence)" } ?? "", .warning)
            ])
    }

    /// Everything known about a peer, with its possible introducers, as members of a JSON object.
    private func members(of peer: Peer) -> [JSON.Member] {
        PeerReport.members(of: peer) + [
            .init("own", .bool(peer.identity == own)),
            .init("introducers", .list(commandSession.introducers(to: peer.id).map { .text("\($0)") })),
        ]
    }

    /// The peers that could introduce this session to a peer, in words; nil if there are none.
    private func introducers(to peer: Peer) -> String? {
        let introducers = commandSession.introducers(to: peer.id).map { commandSession.label(of: $0) }
        return introducers.isEmpty ? nil : introducers.joined(separator: ", ")
    }

    /// All peers as a table.
    private var table: [Line] {
        seen.lines(
            at: commandSession.loop.now, own: own,
            columns: [("ROUTES", { [commandSession] in commandSession.routes(to: $0) })]
                + (commandSession.hasThrough
                    ? [("TOLD BY", { [self] in Line(introducers(to: $0) ?? "", .faint) })] : [])
                + [("INFO", { PeerReport.info(of: $0) })])
    }

    /// Redraws the table every second, because it shows how long each peer was seen.
    private func refresh() {
        guard !hasEnded, results.live.isVisible else { return }
        show()
        commandSession.loop.schedule(at: commandSession.loop.now + .seconds(1)) { [self] in refresh() }
    }

    private func show() {
        guard !hasEnded else { return }
        let lines = seen.count == 0 ? [Line("no peers yet", .faint)] : table
        results.live.show(
            ["", Line("\(commandSession.session.configuration.service)", .strong) + " nearby:"] + lines)
    }
}
