/// The phase of a peer in the session. Each case holds the values that belong to it alone.
enum PeerPhase {
    /// Not seen.
    case unavailable
    /// Seen, or known only because it asks; its invitation then waits for the program.
    case available(IncomingInvitation?)
    /// This session asks for a conversation.
    case inviting(OutgoingInvitation)
    /// One side has accepted the other's request, or gives its own request up. Passed through within one input.
    case settling
    /// A link carries the conversation.
    case connected(Conversation, CarryingLink)
    /// The conversation has lost its link and looks for another.
    case reconnecting(Conversation, Recovery)
    /// The conversation is over. Passed through within one input.
    case ended

    /// The peer's invitation that waits for the program.
    var invitation: IncomingInvitation? {
        if case .available(let invitation) = self { invitation } else { nil }
    }

    /// The state that the program sees.
    var state: PeerState {
        switch self {
        case .unavailable: .unavailable
        case .available: .available
        case .inviting, .settling: .connecting
        case .connected: .connected
        case .reconnecting: .reconnecting
        case .ended: .disconnected
        }
    }
}
