/// What has passed between this session and one peer in their present or last conversation.
public struct PeerStatistics: Hashable, Sendable {
    /// Reliable messages accepted for sending.
    public var messagesSent = 0
    /// Their payload bytes.
    public var bytesSent = 0
    /// Reliable messages received whole.
    public var messagesReceived = 0
    /// Their payload bytes.
    public var bytesReceived = 0
    /// Messages sent again on another link because they were not acknowledged on the one before.
    public var messagesResent = 0
    /// Unreliable messages written to a link.
    public var unreliableSent = 0
    /// Unreliable messages given up because a link was backed up or missing.
    public var unreliableDropped = 0
    /// Unreliable messages received.
    public var unreliableReceived = 0
    /// Unreliable messages that came but were not kept because nobody read.
    public var unreliableUnread = 0
    /// Times the conversation moved to another link, after one broke or to a better route.
    public var reconnects = 0
    /// Bytes accepted for sending and not acknowledged yet.
    public var bytesWaiting = 0
    /// Bytes received and not read by the program yet.
    public var bytesUnread = 0
    /// The link in use; nil while there is none.
    public var link: LinkStatistics?
    /// The transport that carries the link in use.
    public var transport: String?

    /// All zero.
    public init() {}
}

/// What has happened in a session so far, by cause.
public struct SessionStatistics: Hashable, Sendable {
    /// Peers with a conversation now or before, as long as they are known.
    public var peers: [PeerID: PeerStatistics] = [:]
    /// Dials begun.
    public var dials = 0
    /// Dials that opened no pipe, by cause.
    public var dialsFailed: [String: Int] = [:]
    /// Pipes that came in.
    public var pipesAccepted = 0
    /// Pipes closed because too many had not said who they are: at once, or to make room for the next.
    public var pipesRefused = 0
    /// Links that ended, by cause.
    public var linksEnded: [String: Int] = [:]
    /// Requests of others refused by this side, by reason.
    public var refusals: [String: Int] = [:]
    /// Sightings ignored because the limit of known peers or routes was reached.
    public var sightingsIgnored = 0
    /// Conversations ended, by cause.
    public var conversationsEnded: [String: Int] = [:]

    /// All zero.
    public init() {}
}
