/// How the session stands with a peer: each case with what belongs to it, and to no other.
enum PeerPhase {
    /// Not to be seen.
    case unavailable
    /// Seen, or known only because it asks: its invitation then waits for the program.
    case available(PendingInvitation?)
    /// This session asks for a conversation.
    case asking(OwnInvitation)
    /// One of the two has agreed to what the other asks, or gives up asking. Passed through within one input.
    case settling
    /// A link carries the conversation.
    case connected(Conversation, Carrier)
    /// The conversation has lost its link and looks for another.
    case reconnecting(Conversation, Recovery)
    /// The conversation is over. Passed through within one input.
    case parted

    /// What the program sees of it.
    var state: PeerState {
        switch self {
        case .unavailable: .unavailable
        case .available: .available
        case .asking, .settling: .connecting
        case .connected: .connected
        case .reconnecting: .reconnecting
        case .parted: .disconnected
        }
    }
}
