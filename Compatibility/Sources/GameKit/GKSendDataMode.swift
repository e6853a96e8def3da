/// How data are sent.
public enum GKSendDataMode: Int32, Sendable {
    /// Exactly once and in order, or the peer is disconnected.
    case reliable = 0
    /// At once or not at all, in any order. Data of more than 8,192 bytes are sent reliably.
    case unreliable = 1
}
