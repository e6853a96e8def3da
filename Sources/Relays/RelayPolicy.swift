import NighCore

/// The peers that a session carries pipes for. Both ends of a pipe must be among them.
package enum RelayPolicy: String, Sendable, CaseIterable {
    /// No peers.
    case nobody
    /// Peers that are paired with this session.
    case paired
    /// All connected peers.
    case everyone
}

/// The limits on the pipes that a session carries for others.
package struct RelayLimits: Hashable, Sendable {
    /// Pipes at once.
    package var pipes = 16
    /// Pipes at once that one peer has asked for.
    package var pipesPerPeer = 4
    /// Bytes of one pipe, both directions together.
    package var bytes = 1 << 30
    /// How long the wanted peer has to take a pipe.
    package var answerTime = Duration.seconds(10)
    /// How long one pipe may be open.
    package var time = Duration.seconds(3_600)
    /// How long two peers are refused after a pipe between them reached `bytes` or `time`.
    package var pause = Duration.seconds(600)

    /// Creates the default limits.
    package init() {}
}

/// Counts of the pipes that a session has carried for others.
package struct RelayCounts: Hashable, Sendable {
    /// Pipes that are carried now.
    package var pipes = 0
    /// Pipes that were carried since the session began, including the current ones.
    package var pipesEver = 0
    /// Bytes that were carried, in both directions.
    package var bytes = 0
    /// Pipes that were refused.
    package var refusals = 0
}
