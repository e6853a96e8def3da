/// The peers of a session as its delegate knows them. Peers that are gone are forgotten in the order in which they went, beyond a
/// number, so that the names of those that were lost last are still known.
struct PeerTable {
    private struct Record {
        var name: String
        /// Nil for a peer that has only asked for a connection.
        var state: GKPeerConnectionState?
    }

    private static let lostPeerLimit = 256

    private var records: [String: Record] = [:]
    private var lostInOrder: [String] = []

    /// The name of a peer, if it is known.
    func name(of peer: String) -> String? { records[peer]?.name }

    /// The state that the delegate was told last.
    func state(of peer: String) -> GKPeerConnectionState? { records[peer]?.state }

    /// The peers in a state, in the order of their IDs.
    func peers(in state: GKPeerConnectionState) -> [String] {
        records.filter { $0.value.state == state }.keys.sorted()
    }

    /// Notes the name of a peer.
    mutating func note(_ name: String, of peer: String) {
        records[peer, default: Record(name: name)].name = name
    }

    /// Notes the state of a peer.
    mutating func note(_ state: GKPeerConnectionState, of peer: String, named name: String) {
        records[peer] = Record(name: name, state: state)
        lostInOrder.removeAll { $0 == peer }
        guard state == .stateUnavailable || state == .stateDisconnected else { return }
        lostInOrder.append(peer)
        if lostInOrder.count > Self.lostPeerLimit { records[lostInOrder.removeFirst()] = nil }
    }
}
