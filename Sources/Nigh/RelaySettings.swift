import NighRelays

/// Settings for connections that a session relays between peers, and that peers relay to it.
///
/// Where two peers cannot reach each other, a peer that is connected to both may relay a connection for them. The two
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

    /// The peers for which the session relays connections, if both ends are among them, and which may relay connections
    /// to it.
    public var allowed = Allowance.paired
    /// The most connections that the session relays at once.
    public var connections = 16
    /// The most bytes of each, in both directions together. After that the two cannot use this session for ten minutes.
    public var bytes = 1 << 30
    /// The longest duration of each.
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
