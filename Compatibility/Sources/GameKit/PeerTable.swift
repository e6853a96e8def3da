import NighLoop

/// The peers of a session as its delegate knows them. Peers that are gone are forgotten in the order in which they
/// went, beyond a number, so that the names of those that were lost last are still known.
struct PeerTable {
    private struct Entry {
        var name: String
        /// Nil for a peer that has only asked for a connection.
        var state: GKPeerConnectionState?
    }

    private static let lostPeerLimit = 256

    private var entries: [String: Entry] = [:]
    private var lostInOrder: [String] = []
    /// The IDs as text and back, so that it is not made anew for each message. Those of all entries, and no others.
    private var texts: [PeerID: String] = [:]
    private var ids: [String: PeerID] = [:]

    /// The ID of a peer as text.
    func text(of id: PeerID) -> String { texts[id] ?? id.description }

    /// The ID that a text stands for.
    func id(of text: String) -> PeerID? { ids[text] ?? PeerID(text) }

    private mutating func keepID(_ peer: String) {
        guard ids[peer] == nil, let id = PeerID(peer) else { return }
        ids[peer] = id
        texts[id] = peer
    }

    private mutating func forget(_ peer: String) {
        entries[peer] = nil
        if let id = ids.removeValue(forKey: peer) { texts[id] = nil }
    }

    /// The name of a peer, if it is known.
    func name(of peer: String) -> String? { entries[peer]?.name }

    /// The state that was last reported to the delegate.
    func state(of peer: String) -> GKPeerConnectionState? { entries[peer]?.state }

    /// The peers in a state, in the order of their IDs.
    func peers(in state: GKPeerConnectionState) -> [String] {
        entries.filter { $0.value.state == state }.keys.sorted()
    }

    /// Notes the name of a peer.
    mutating func note(_ name: String, of peer: String) {
        entries[peer, default: Entry(name: name)].name = name
        keepID(peer)
    }

    /// Notes the state of a peer.
    mutating func note(_ state: GKPeerConnectionState, of peer: String, named name: String) {
        entries[peer] = Entry(name: name, state: state)
        keepID(peer)
        lostInOrder.removeAll { $0 == peer }
        guard state == .stateUnavailable || state == .stateDisconnected else { return }
        lostInOrder.append(peer)
        if lostInOrder.count > Self.lostPeerLimit { forget(lostInOrder.removeFirst()) }
    }
}
