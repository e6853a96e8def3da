import JSONText
import NighCore
import SessionArguments

/// Looks on as peers come and go, and tells it: each change as it happens, and at a terminal all of them in a table that is kept up to date.
///
/// `@unchecked Sendable`: what changes is confined to the session's loop.
final class DiscoveryWatch: @unchecked Sendable {
    private let mine: CommandSession
    private let results: Results
    private let tellsChanges: Bool
    private var seen = SeenPeers()
    private var waiting: CheckedContinuation<Void, Never>?
    private var hasEnded = false
    private let startedAt: Moment

    /// How it was when nobody looked on any more.
    struct Outcome: Sendable {
        /// Who was seen then, and for how many seconds each.
        let peers: [(peer: Peer, age: Int)]
        /// The same for a person.
        let table: [Line]
        /// Whether anybody was seen at any time.
        let hasSeenAnybody: Bool
        /// Why nothing works, if nothing does.
        let fault: TransportsUnavailable?
    }

    init(_ mine: CommandSession, _ results: Results, tellsChanges: Bool) {
        self.mine = mine
        self.results = results
        self.tellsChanges = tellsChanges
        startedAt = mine.loop.now
    }

    /// Starts the session and looks on for so long, or until it is interrupted.
    func run(for patience: Duration?, _ interruption: Interruption) async -> Outcome {
        mine.start(onEvent: { [self] in took($0) })
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

    private func took(_ event: SessionEvent) {
        switch event {
        case .stateChanged(let peer, _, _), .peerChanged(let peer):
            guard !hasEnded, let change = seen.take(peer, at: mine.loop.now) else { return }
            if tellsChanges { tell(change, peer) }
            show()
        case .transportChanged(_, .down(let error)):
            // What nobody asked for is not missed.
            if mine.transportsWereAskedFor { results.remark("\(error)") }
        case .transportFailed(let error): results.remark("\(error)")
        default: break
        }
    }

    private func tell(_ change: SeenPeers.Change, _ peer: Peer) {
        // One object at the end has those who are there then; all who ever came and went would be without bound.
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

    /// Shows the table again and again, since those who are there grow older.
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
