/// What has passed over one link, from its first byte on.
public struct LinkStatistics: Hashable, Sendable {
    /// Bytes given to the pipe.
    public var bytesSent = 0
    /// Bytes taken from the pipe.
    public var bytesReceived = 0
    /// Optional frames of kinds this version does not know.
    public var framesSkipped = 0
    /// Unreliable messages written.
    public var unreliableSent = 0
    /// Unreliable messages not written because the link was backed up.
    public var unreliableDropped = 0
    /// What pings have shown.
    public var roundTrip = RoundTrip()

    /// All zero.
    public init() {}
}
