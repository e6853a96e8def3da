import NighLoop

/// What the main queue has to deal with, in order.
enum SessionOccurrence: Sendable {
    case event(SessionEvent)
    case message(Message)
    /// A call of this session to a peer has failed.
    case callFailed(PeerID, NighError)
}
