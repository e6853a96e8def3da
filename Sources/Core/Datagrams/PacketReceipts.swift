/// Counts the packets that the receiver of a path gets, and schedules its reports to the sender.
struct PacketReceipts {
    private static let pause = Moment.Span.milliseconds(50)
    /// The packets, and the bytes in them, after which a report is due without waiting.
    private static let mostPackets = 64
    private static let mostBytes = 16 << 10

    private var received: UInt64 = 0
    /// When the packet with the highest number came.
    private var highestAt: Moment
    private var unreportedPackets = 0
    private var unreportedBytes = 0
    /// When the next report is due.
    private(set) var deadline = Moment.never

    init(now: Moment) { highestAt = now }

    /// Counts a packet.
    mutating func note(isHighest: Bool, now: Moment) {
        received &+= 1
        if isHighest { highestAt = now }
    }

    /// Notes that a packet calls for a report. Returns whether that is due now.
    mutating func noteReportable(byteCount: Int, now: Moment) -> Bool {
        unreportedPackets += 1
        unreportedBytes += byteCount
        if unreportedPackets >= Self.mostPackets || unreportedBytes >= Self.mostBytes { return true }
        if deadline == .never { deadline = now + Self.pause }
        return false
    }

    /// Returns the report that is due. `highest` is the highest number of a packet that has come.
    mutating func takeReport(highest: UInt64, now: Moment) -> DatagramContent.Report {
        deadline = .never
        unreportedPackets = 0
        unreportedBytes = 0
        let delay = UInt32(clamping: (now - highestAt).nanoseconds / 1_000)
        return DatagramContent.Report(highest: highest, delay: delay, received: received)
    }
}
