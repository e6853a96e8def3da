import NighCore

/// Follows what one session tells about the states of its peers, and holds it to the moves allowed.
package struct StateWatch {
    private var states: [PeerID: PeerState] = [:]

    /// Nothing was told yet: everybody is unavailable.
    package init() {}

    /// The state told last.
    package func state(of peer: PeerID) -> PeerState { states[peer] ?? .unavailable }

    /// Everybody of whom something was told, by PeerID.
    package var peers: [PeerID] { states.keys.sorted() }

    /// A change was told. Returns what is wrong with it.
    package mutating func told(
        _ peer: PeerID, _ next: PeerState, from last: PeerState, cause: NighError?
    ) -> Fault? {
        let known = state(of: peer)
        states[peer] = next
        guard known == last else {
            return Fault(.moves, "\(peer.short) is told to go from \(last) to \(next), but was \(known)")
        }
        guard last.mayMove(to: next) else {
            return Fault(.moves, "\(peer.short) goes from \(last) to \(next)")
        }
        let needsCause =
            next == .disconnected || next == .reconnecting || (last == .connecting && next == .available)
        guard !needsCause || cause != nil else {
            return Fault(.moves, "\(peer.short) goes from \(last) to \(next), and nobody says why")
        }
        return nil
    }
}
