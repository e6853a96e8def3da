/// How a ping travels to a peer.
public enum PingPath: String, Hashable, Sendable {
    /// On the link, where it overtakes waiting messages.
    case link
    /// Beside the link, as a packet: see `SessionConfiguration.datagrams`.
    case packets
}
