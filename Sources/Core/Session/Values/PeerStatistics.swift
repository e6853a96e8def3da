/// Counts of the present or last conversation with one peer.
public struct PeerStatistics: Hashable, Sendable {
    /// Reliable messages accepted for sending.
    public var messagesSent = 0
    /// Payload bytes of the reliable messages accepted for sending.
    public var bytesSent = 0
    /// Reliable messages received whole.
    public var messagesReceived = 0
    /// Payload bytes of the reliable messages received whole.
    public var bytesReceived = 0
    /// Messages sent again on another link because they were not acknowledged on the one before.
    public var messagesResent = 0
    /// Unreliable messages written to a link.
    public var unreliableSent = 0
    /// Unreliable messages dropped because a link was backed up or missing.
    public var unreliableDropped = 0
    /// Unreliable messages received.
    public var unreliableReceived = 0
    /// Unreliable messages that were received but not kept, because the program did not read.
    public var unreliableUnread = 0
    /// Streams that either side opened.
    public var streamsOpened = 0
    /// Bytes of streams written to a link for the first time.
    public var streamBytesSent = 0
    /// Bytes of streams received.
    public var streamBytesReceived = 0
    /// How many times the conversation changed to another link, after one broke or to move to a better route.
    public var reconnects = 0
    /// Bytes accepted for sending and not acknowledged yet.
    public var bytesWaiting = 0
    /// Bytes received and not read by the program yet.
    public var bytesUnread = 0
    /// The counts of the link in use; nil while there is none.
    public var link: LinkStatistics?
    /// The counts of that link's datagram path; nil while there is none.
    public var datagrams: DatagramStatistics?
    /// The scheme of the transport that carries the link in use.
    public var transport: String?

    /// Creates counts that are all zero.
    public init() {}
}
