/// Whether a session advertises, browses, or both.
public enum GKSessionMode: Int32, Sendable {
    /// Advertises: clients and peers find it.
    case server = 0
    /// Browses: finds servers and peers.
    case client = 1
    /// Advertises and browses.
    case peer = 2
}
