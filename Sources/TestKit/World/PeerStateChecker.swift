import NighCore

/// Follows the states of a session's peers as the session reports them, and checks that each change is allowed.
package struct PeerStateChecker {
    private var states: [PeerID: PeerState] = [:]

    /// Starts with all peers unavailable, as before the first report.
    package init() {}

    /// Returns the last reported state of a peer.
    package func state(of peer: PeerID) -> PeerState { states[peer] ?? .unavailable }

    /// All peers of which a state was reported, sorted by PeerID.
    package var peers: [PeerID] { states.keys.sorted() }

    /// Takes in a reported change. Returns what is wrong with it; nil if nothing is.
    package mutating func record(
        _ peer: PeerID, _ next: PeerState, from last: PeerState, cause: NighError?
    ) -> Violation? {
        let known = state(of: peer)
        states[peer] = next
        guard known == last else {
            return Violation(
                .moves, "\(peer.short) is reported to go from \(last) to \(next), but was \(known)")
        }
        guard last.mayMove(to: next) else {
            return Violation(.moves, "\(peer.short) goes from \(last) to \(next)")
        }
        let needsCause =
            next == .disconnected || next == .reconnecting || (last == .connecting && next == .available)
        guard !needsCause || cause != nil else {
            return Violation(.moves, "\(peer.short) goes from \(last) to \(next) without a cause")
        }
        return nil
    }
}
