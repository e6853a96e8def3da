/// The state of a peer in a session.
public enum PeerState: String, Hashable, Sendable, CaseIterable {
    /// Not seen, and not connected.
    case unavailable
    /// Seen, by discovery or because it asks for a conversation.
    case available
    /// One of the two sides has asked for a conversation, and the answer is on its way.
    case connecting
    /// Connected: messages flow.
    case connected
    /// The link broke, and the session looks for another one. Messages are kept.
    case reconnecting
    /// The conversation is over. Passed through on the way to `available` or `unavailable`.
    case disconnected

    /// Whether there is a conversation.
    package var hasConversation: Bool { self == .connected || self == .reconnecting }

    /// Whether there is a conversation, or one was asked for.
    var isEngaged: Bool {
        switch self {
        case .connecting, .connected, .reconnecting: true
        case .unavailable, .available, .disconnected: false
        }
    }

    /// Returns whether a peer may go from this state to `next` in one step.
    public func mayBecome(_ next: PeerState) -> Bool {
        switch (self, next) {
        case (.unavailable, .available), (.available, .unavailable),
            (.available, .connecting), (.connecting, .available), (.connecting, .connected),
            (.connected, .reconnecting), (.reconnecting, .connected),
            (.connected, .disconnected), (.reconnecting, .disconnected),
            (.disconnected, .available), (.disconnected, .unavailable):
            true
        default: false
        }
    }
}
