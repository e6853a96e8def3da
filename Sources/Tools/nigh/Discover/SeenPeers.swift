import JSONText
import NighCore

/// The peers that are seen now, and since when. A value: its owner passes each change to it.
struct SeenPeers {
    /// The kind of change that an update of a peer brings.
    enum Change: String {
        case found
        case changed
        case lost
    }

    private var seen: [PeerID: (peer: Peer, since: Moment)] = [:]

    /// Whether any peer was ever seen.
    private(set) var hasSeenAnybody = false

    /// The number of peers that are seen now.
    var count: Int { seen.count }

    /// Applies the current state of a peer. Returns nil if nothing changed. A peer without a route is not seen.
    mutating func update(_ peer: Peer, at now: Moment) -> Change? {
        guard let known = seen[peer.id] else {
            guard !peer.routes.isEmpty else { return nil }
            seen[peer.id] = (peer, now)
            hasSeenAnybody = true
            return .found
        }
        guard !peer.routes.isEmpty else {
            seen[peer.id] = nil
            return .lost
        }
        seen[peer.id]?.peer = peer
        return known.peer.looksLike(peer) ? nil : .changed
    }

    /// All peers that are seen, sorted by name, and for how many seconds each was seen.
    func all(at now: Moment) -> [(peer: Peer, age: Int)] {
        seen.values
            .sorted { ($0.peer.name, $0.peer.id) < ($1.peer.name, $1.peer.id) }
            .map { ($0.peer, Int((now - $0.since).nanoseconds / 1_000_000_000)) }
    }

    /// The peers as a table, with these columns behind the others. `own` is the user's own identity.
    func lines(at now: Moment, own: PeerID?, columns: [(head: String, cell: (Peer) -> Line)]) -> [Line] {
        var table = TextTable(
            [("NAME", .left), ("PEER", .left), ("KEY", .left), ("SEEN", .right), ("SIGNAL", .right)]
                + columns.map { ($0.head, .left) })
        for (peer, age) in all(at: now) {
            let signals = peer.routes.compactMap(\.quality)
            table.add(
                [
                    Line(peer.name, .strong), Line(peer.identity.short),
                    peer.identity == own ? "yours" : PeerReport.line(for: peer.trust),
                    Line(PeerReport.age(age)),
                    Line(signals.max().map { "\(Int(($0 * 100).rounded())) %" } ?? ""),
                ] + columns.map { $0.cell(peer) })
        }
        return table.lines
    }
}

extension Peer {
    /// Whether a person sees the same of both snapshots of a peer.
    fileprivate func looksLike(_ other: Peer) -> Bool {
        identity == other.identity && name == other.name && info == other.info && isFull == other.isFull
            && state == other.state && routes == other.routes && transport == other.transport
            && hasDatagrams == other.hasDatagrams && trust == other.trust
    }
}
