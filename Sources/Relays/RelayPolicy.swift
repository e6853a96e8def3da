import NighCore

/// For whom a session carries pipes. Both ends of a pipe must be among them.
package enum RelayPolicy: String, Sendable, CaseIterable {
    /// For nobody.
    case nobody
    /// For peers that are paired with this session.
    case paired
    /// For every peer that is connected.
    case everyone
}

/// The limits of what a session carries for others.
package struct RelayLimits: Hashable, Sendable {
    /// Pipes at once.
    package var pipes = 16
    /// Pipes at once that the same peer has asked for.
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

/// What a session has carried for others so far.
package struct RelayCounts: Hashable, Sendable {
    /// Pipes that are carried now.
    package var pipes = 0
    /// Pipes that were carried since the session began, including those of now.
    package var pipesEver = 0
    /// Bytes that were carried, in both directions.
    package var bytes = 0
    /// Pipes that were refused.
    package var refusals = 0
}
