import JSONText
import NighCore

/// Who is seen, and since when. A value: whoever holds it tells it what happens.
struct SeenPeers {
    /// What a change of what is known about a peer means to whoever looks on.
    enum Change: String {
        case found
        case changed
        case lost
    }

    private var seen: [PeerID: (peer: Peer, since: Moment)] = [:]

    /// Whether anybody was ever seen.
    private(set) var hasSeenAnybody = false

    /// How many there are.
    var count: Int { seen.count }

    /// Takes in how a peer is now; nil where that is no news. Whoever has no route is not seen.
    mutating func take(_ peer: Peer, at now: Moment) -> Change? {
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
        return known.peer == peer ? nil : .changed
    }

    /// All of them by name, and for how many seconds each was seen.
    func all(at now: Moment) -> [(peer: Peer, age: Int)] {
        seen.values
            .sorted { ($0.peer.name.description, $0.peer.id) < ($1.peer.name.description, $1.peer.id) }
            .map { ($0.peer, Int((now - $0.since).nanoseconds / 1_000_000_000)) }
    }

    /// A table of them.
    func lines(at now: Moment) -> [Line] {
        var table = TextTable([
            ("NAME", .left), ("PEER", .left), ("KEY", .left), ("SEEN", .right), ("SIGNAL", .right),
            ("WAYS", .left), ("SAYS", .left),
        ])
        for (peer, age) in all(at: now) {
            let signals = peer.routes.compactMap(\.quality)
            table.add([
                Line(peer.name.description, .strong), Line(peer.id.short), PeerTelling.line(for: peer.trust),
                Line(PeerTelling.age(age)),
                Line(signals.max().map { "\(Int(($0 * 100).rounded())) %" } ?? ""),
                PeerTelling.ways(to: peer),
                PeerTelling.line(for: peer.info),
            ])
        }
        return table.lines
    }
}
