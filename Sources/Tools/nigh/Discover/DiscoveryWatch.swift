import JSONText
import NighCore
import SessionArguments

/// Reports peers as they come and go: each change as it happens, and at a terminal a table of all peers that is kept up
/// to date.
///
/// `@unchecked Sendable`: all mutable state is confined to the session's loop.
final class DiscoveryWatch: @unchecked Sendable {
    private let mine: CommandSession
    private let results: Results
    private let tellsChanges: Bool
    private var seen = SeenPeers()
    private var waiting: CheckedContinuation<Void, Never>?
    private var hasEnded = false
    private let startedAt: Moment

    /// The state at the end of the watch.
    struct Outcome: Sendable {
        /// The peers that were seen at the end, and for how many seconds each.
        let peers: [(peer: Peer, age: Int)]
        /// The same peers as a table for a person.
        let table: [Line]
        /// Whether any peer was seen at any time.
        let hasSeenAnybody: Bool
        /// The errors of the transports, if none of them works.
        let fault: TransportsUnavailable?
    }

    init(_ mine: CommandSession, _ results: Results, tellsChanges: Bool) {
        self.mine = mine
        self.results = results
        self.tellsChanges = tellsChanges
        startedAt = mine.loop.now
    }

    /// Starts the session and watches for `patience`, or until it is interrupted.
    func run(for patience: Duration?, _ interruption: Interruption) async -> Outcome {
        mine.start(onEvent: { [self] in handle($0) })
        mine.loop.execute { [self] in refresh() }
        interruption.onRequest { [self] in mine.loop.execute { [self] in end() } }
        await withCheckedContinuation { continuation in
            mine.loop.execute { [self] in
                if hasEnded { return continuation.resume() }
                waiting = continuation
                guard let patience else { return }
                mine.loop.schedule(at: startedAt + Moment.Span(patience)) { [self] in end() }
            }
        }
        return await mine.onLoop { [self] mine in
            Outcome(
                peers: seen.all(at: mine.loop.now), table: seen.lines(at: mine.loop.now),
                hasSeenAnybody: seen.hasSeenAnybody, fault: mine.groundlessness)
        }
    }

    private func end() {
        hasEnded = true
        waiting?.resume()
        waiting = nil
    }

    private func handle(_ event: SessionEvent) {
        switch event {
        case .stateChanged(let peer, _, _), .peerChanged(let peer):
            guard !hasEnded, let change = seen.take(peer, at: mine.loop.now) else { return }
            if tellsChanges { report(change, peer) }
            show()
        case .transportChanged(_, .down(let error)):
            // A transport that the user did not name may fail without a remark.
            if mine.transportsWereAskedFor { results.remark("\(error)") }
        case .transportFailed(let error): results.remark("\(error)")
        default: break
        }
    }

    private func report(_ change: SeenPeers.Change, _ peer: Peer) {
        // One JSON object lists only the peers that are seen at the end: a list of all changes would grow without
        // bound.
        guard results.form != .json else { return }
        let after = (mine.loop.now - startedAt).milliseconds / 1_000
        let mark =
            switch change {
            case .found: Line("+ ", .good)
            case .changed: Line("~ ", .doubtful)
            case .lost: Line("- ", .bad)
            }
        results.tell(
            DiscoverErrand.eventKind,
            [.init("event", .text(change.rawValue)), .init("after_s", .number(after))]
                + PeerTelling.members(of: peer),
            words: [
                mark + Line(peer.name.description, .strong) + "  \(peer.id.short)  "
                    + PeerTelling.ways(to: peer) + "  "
                    + PeerTelling.line(for: peer.info)
                    + Line(PeerWarning(peer).map { "  \($0.sentence)" } ?? "", .doubtful)
            ])
    }

    /// Redraws the table every second, because it shows how long each peer was seen.
    private func refresh() {
        guard !hasEnded, results.live.isSeen else { return }
        show()
        mine.loop.schedule(at: mine.loop.now + .seconds(1)) { [self] in refresh() }
    }

    private func show() {
        guard !hasEnded else { return }
        let words = seen.count == 0 ? [Line("nobody yet", .faint)] : seen.lines(at: mine.loop.now)
        results.live.show(
            ["", Line("\(mine.session.configuration.service)", .strong) + " near here:"] + words)
    }
}
