/// Counts of a datagram path, which carries the unreliable messages of a link as datagrams.
public struct DatagramStatistics: Hashable, Sendable {
    /// Packets that have left.
    public var packetsSent = 0
    /// Packets that have come and are genuine.
    public var packetsReceived = 0
    /// Packets that the other side has not received, by its last report.
    public var packetsLost = 0
    /// Messages that were sent on the path.
    public var messagesSent = 0
    /// Messages that have come on the path.
    public var messagesReceived = 0
    /// Packets that came a second time.
    public var duplicates = 0
    /// Packets and messages that came after newer ones, and were dropped for that.
    public var late = 0
    /// Packets that were forged, damaged, or meant for somebody else.
    public var rejected = 0
    /// Messages that were not sent, because more was sent than the path carries.
    public var droppedByPace = 0
    /// Packets that could not leave at once.
    public var droppedByRoom = 0
    /// Packets that were longer than the network carries.
    public var droppedBySize = 0
    /// How often the other side has moved to another address.
    public var moves = 0
    /// The last measured time of a round trip; zero before there is one.
    public var roundTrip = Duration.zero

    /// Creates counts that are all zero.
    public init() {}
}
