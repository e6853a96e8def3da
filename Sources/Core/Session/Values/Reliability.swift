/// How a message is delivered.
public enum Reliability: Hashable, Sendable {
    /// Exactly once and in order on this lane. The message is kept until the peer has it.
    case reliable(Lane)
    /// At once or not at all: dropped if it would have to wait, never sent twice, and never delivered after a newer
    /// one, except when messages begin or cease to travel as datagrams.
    case unreliable
    /// Like `unreliable`, but a message that travels as a datagram is delivered as it comes, also after newer ones.
    case unordered
    /// Like `unreliable` among the messages of one key, 0 to 253, for values that only count until there is a newer
    /// one. If there is no room for it now, the newest of each key waits instead of being dropped; up to 16 keys wait.
    case newest(key: UInt8)

    /// Exactly once and in order on the main lane.
    public static let reliable = Reliability.reliable(.main)
}
