import NighCore

/// Follows the states of a session's peers as the session reports them, and checks that each change is allowed.
package struct PeerStateChecker {
    private var states: [PeerID: PeerState] = [:]

    /// Starts with all peers unavailable, as before the first report.
    package init() {}

    /// Returns the last reported state of a peer.
    package func state(of peer: PeerID) -> PeerState { states[peer] ?? .unavailable }

    /// All peers whose state was reported, sorted by PeerID.
    package var peers: [PeerID] { states.keys.sorted() }

    /// Takes in an event. Returns the rule that it breaks; nil if it breaks none.
    package mutating func record(_ event: SessionEvent) -> Violation? {
        guard let (peer, cause) = event.stateChange else { return nil }
        let last = state(of: peer.id)
        states[peer.id] = peer.state
        let isOfThisEvent =
            switch event {
            case .peerFound: last == .unavailable
            case .available: last != .unavailable
            case .connected: last == .connecting
            case .reconnected: last == .reconnecting
            default: true
            }
        guard isOfThisEvent, last.mayBecome(peer.state) else {
            return Violation(.moves, "\(peer.id.short), which was \(last), is reported so: \(event)")
        }
        guard last != .connecting || peer.state == .connected || cause != nil else {
            return Violation(.moves, "\(peer.id.short) goes from \(last) to \(peer.state) without a cause")
        }
        return nil
    }
}
