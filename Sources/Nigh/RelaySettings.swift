import NighRelays

/// For whom a session carries connections, and whom it lets carry connections to it.
///
/// Where two peers cannot reach each other, a peer that is connected to both may carry a connection for them. The two
/// encrypt it end to end, so that peer reads nothing. Their conversation moves to a direct connection as soon as there
/// is one.
public struct RelaySettings: Sendable {
    /// A set of peers.
    public enum Allowance: Sendable {
        /// No peer.
        case nobody
        /// The peers that are paired with this session.
        case paired
        /// Every connected peer.
        case everyone
    }

    /// The peers for which the session carries connections, if both ends are among them, and whom it lets carry
    /// connections to it.
    public var allowed = Allowance.paired
    /// Connections that the session carries at once.
    public var connections = 16
    /// Bytes that each may carry, in both directions together. After that the two cannot use this session for ten
    /// minutes.
    public var bytes = 1 << 30
    /// How long each may last.
    public var time = Duration.seconds(3_600)

    /// Creates the default settings: relays for paired peers.
    public init() {}

    var policy: RelayPolicy {
        switch allowed {
        case .nobody: .nobody
        case .paired: .paired
        case .everyone: .everyone
        }
    }

    var limits: RelayLimits {
        var limits = RelayLimits()
        limits.pipes = connections
        limits.pipesPerPeer = min(limits.pipesPerPeer, connections)
        limits.bytes = bytes
        limits.time = time
        return limits
    }
}
