/// The peers of a session as they were last reported, and the last ones that were lost.
struct ReportedPeers {
    private var present = ContiguousArray<Peer>()
    private var places: [PeerID: Int] = [:]
    /// Peers that were lost, so that their last messages still carry their names. The one after the newest is the
    /// oldest.
    private var lost = ContiguousArray<Peer>()
    private var newestLost = -1

    /// The number of lost peers that are kept.
    private static let lostLimit = 256

    /// The peers that can be reached, or are connected, by PeerID.
    var sorted: [Peer] { present.sorted { $0.id < $1.id } }

    /// The peers that are connected, in any order.
    var connected: [Peer] { present.filter(\.isConnected) }

    /// The peer, if it can be reached, or is connected.
    func present(_ id: PeerID) -> Peer? { places[id].map { present[$0] } }

    /// The peer as it was when it was lost.
    func lost(_ id: PeerID) -> Peer? {
        let newestFirst = lost[..<(newestLost + 1)].reversed() + lost[(newestLost + 1)...].reversed()
        return newestFirst.first { $0.id == id }
    }

    /// Takes in a peer that was found, or that has changed.
    mutating func note(_ peer: Peer) {
        let place = place(of: peer)
        if place < present.count {
            present[place] = peer
        } else {
            present.append(peer)
            places[peer.id] = place
        }
        peer.handle.place = place
    }

    /// The place of the peer; one behind the last if it has none.
    private func place(of peer: Peer) -> Int {
        // Most snapshots have the handle of the one before, which spares a search.
        let likely = peer.handle.place
        if likely < present.count, present[likely].handle === peer.handle { return likely }
        return places[peer.id] ?? present.count
    }

    /// Takes in a peer that was lost.
    mutating func noteLoss(of peer: Peer) {
        guard let place = places.removeValue(forKey: peer.id) else { return }
        let last = present.removeLast()
        if place < present.count {
            present[place] = last
            places[last.id] = place
            last.handle.place = place
        }
        newestLost = newestLost + 1 < Self.lostLimit ? newestLost + 1 : 0
        if newestLost < lost.count { lost[newestLost] = peer } else { lost.append(peer) }
    }
}
