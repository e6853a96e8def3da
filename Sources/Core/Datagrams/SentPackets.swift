/// Remembers the packets that the sender of a path has sent, to understand the receiver's reports.
struct SentPackets {
    /// The news of a report: the packets since the report before it.
    struct Account: Equatable {
        /// The packets that came, and those that did not.
        var received: Int
        var lost: Int
        /// All packets that were sent and never came.
        var allLost: Int
        /// The time that the newest of them took, there and back; nil if it left too long ago to tell.
        var roundTrip: Moment.Span?
        /// By how much `roundTrip` exceeds the shortest of the last seconds.
        var delay = Moment.Span.zero
    }

    /// A route may become slower for good, so the shortest round trip does not count for ever.
    private static let quickestTime = Moment.Span.seconds(10)
    private static let memory = 256

    /// The number of the next packet.
    private(set) var nextNumber: UInt64 = 0
    private var sentAt = [Moment](repeating: .never, count: memory)
    private var reported = DatagramContent.Report(highest: 0, delay: 0, received: 0)
    private var quickest = Moment.Span(nanoseconds: .max)
    private var quickestSince = Moment(nanoseconds: .min)

    /// Notes that the next packet leaves.
    mutating func note(now: Moment) {
        sentAt[Int(nextNumber % UInt64(Self.memory))] = now
        nextNumber &+= 1
    }

    /// Takes a report. Returns nil if it is older than another one, or impossible.
    mutating func take(_ report: DatagramContent.Report, now: Moment) -> Account? {
        guard report.highest >= reported.highest, report.highest < nextNumber,
            report.received >= reported.received, report.received <= report.highest + 1
        else { return nil }
        let received = Int(clamping: report.received - reported.received)
        let passed = Int(clamping: report.highest - reported.highest) + (reported.received == 0 ? 1 : 0)
        reported = report
        var account = Account(
            received: received, lost: max(passed - received, 0),
            allLost: Int(clamping: report.highest + 1 - report.received))
        guard nextNumber - report.highest <= UInt64(Self.memory) else { return account }
        let sent = sentAt[Int(report.highest % UInt64(Self.memory))]
        let trip = max((now - sent).nanoseconds - Int64(report.delay) * 1_000, 0)
        if now - quickestSince >= Self.quickestTime {
            quickest = .init(nanoseconds: .max)
            quickestSince = now
        }
        quickest = min(quickest, .init(nanoseconds: trip))
        account.roundTrip = .init(nanoseconds: trip)
        account.delay = .init(nanoseconds: trip - quickest.nanoseconds)
        return account
    }
}
