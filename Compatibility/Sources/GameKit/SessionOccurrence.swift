import NighLoop

/// An event, a message or a failed call, which the main queue handles in order.
enum SessionOccurrence: Sendable {
    case event(SessionEvent)
    case message(Message)
    /// A call of this session to a peer has failed.
    case callFailed(PeerID, NighError)
}
