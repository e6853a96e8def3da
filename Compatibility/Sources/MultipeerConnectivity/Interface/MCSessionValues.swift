/// How `MCSession.send` delivers a message.
public enum MCSessionSendDataMode: Int, Sendable {
    /// Once, and in the order of all reliable messages.
    case reliable = 0
    /// At once or not at all.
    case unreliable = 1
}

/// How a session stands with a peer.
public enum MCSessionState: Int, Sendable {
    /// The peer is not connected.
    case notConnected = 0
    /// The peer is being connected.
    case connecting = 1
    /// The peer is connected.
    case connected = 2
}

/// A session's preference for encryption. Every connection is encrypted regardless of it.
public enum MCEncryptionPreference: Int, Sendable {
    /// Encryption is welcome.
    case optional = 0
    /// Encryption is required.
    case required = 1
    /// Encryption is not asked for. There is no connection without it nevertheless.
    case none = 2
}

/// The least number of peers in a session, oneself included.
public let kMCSessionMinimumNumberOfPeers = 2
/// The greatest number of peers in a session, oneself included, unless `NighMultipeer.maximumNumberOfPeers` says
/// otherwise.
public let kMCSessionMaximumNumberOfPeers = 8
