/// Counts of one link since its first byte.
public struct LinkStatistics: Hashable, Sendable {
    /// The number of bytes passed to the pipe.
    public var bytesSent = 0
    /// The number of bytes received from the pipe.
    public var bytesReceived = 0
    /// The number of skipped frames: optional frames whose type this version does not know.
    public var framesSkipped = 0
    /// The number of unreliable messages written.
    public var unreliableSent = 0
    /// The number of unreliable messages dropped because the link was backed up.
    public var unreliableDropped = 0
    /// The round trip, as pings have measured it.
    public var roundTrip = RoundTrip()

    /// Creates statistics that are all zero.
    public init() {}
}
