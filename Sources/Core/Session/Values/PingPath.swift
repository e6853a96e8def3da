/// How a ping travels to a peer.
public enum PingPath: String, Hashable, Sendable {
    /// On the link, where it overtakes waiting messages.
    case link
    /// As a datagram: see `SessionConfiguration.datagrams`.
    case packets
}
