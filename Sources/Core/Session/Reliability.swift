/// How a message is delivered.
public enum Reliability: Hashable, Sendable {
    /// Exactly once and in order on this lane. The message is kept until the peer has it.
    case reliable(Lane)
    /// At once or not at all: dropped if it would have to wait, never sent twice.
    case unreliable

    /// Exactly once and in order on the main lane.
    public static let reliable = Reliability.reliable(.main)
}
