/// How fast packets may leave on a datagram path: a bucket that fills at a rate, and a rate that falls when packets are
/// lost or delayed.
///
/// A program that sends less than the path carries never notices it. One that sends more shares the network with the
/// link.
struct DatagramPace {
    /// Bytes a second.
    private(set) var rate = 2.5e6
    private var tokens = 0.0
    private var filledAt: Moment
    /// Whether no packet was held up or lost so far, so that the rate may grow quickly.
    private var isStarting = true
    private var slowedAt = Moment(nanoseconds: .min)
    /// The bytes that were sent since the last report, and when that came.
    private var sentSince = 0
    private var reportedAt: Moment
    /// The length of the last packets.
    private var packetLength = 0.0

    private static let leastRate = 32e3
    private static let mostRate = 4e9
    /// The bytes that may leave at once, however slow the path is.
    private static let leastBurst = 64e3
    /// The bytes that may leave at once on a faster path, in seconds at its rate.
    private static let burstTime = 0.02
    /// The share of packets up to which a loss may be the radio's and not a sign of a full path.
    private static let toleratedLoss = 0.15
    /// The queueing delay up to which the rate does not fall.
    private static let toleratedDelay = Moment.Span.milliseconds(40)
    /// The shortest time between two reductions of the rate.
    private static let slowInterval = Moment.Span.milliseconds(100)

    init(now: Moment) {
        filledAt = now
        reportedAt = now
        tokens = Self.leastBurst
    }

    private var burst: Double { max(Self.leastBurst, rate * Self.burstTime) }

    /// Returns whether this number of bytes may leave now in this number of packets, and counts them if so.
    mutating func admits(_ count: Int, packets: Int, now: Moment) -> Bool {
        let passed = Double((now - filledAt).nanoseconds) / 1e9
        filledAt = now
        tokens = min(tokens + passed * rate, burst)
        guard tokens >= Double(count) else { return false }
        tokens -= Double(count)
        sentSince += count
        packetLength += (Double(count) / Double(packets) - packetLength) / 8
        return true
    }

    /// When this number of bytes may leave, if nothing else does before.
    func opensAt(_ count: Int) -> Moment {
        guard tokens < Double(count) else { return filledAt }
        return filledAt + .init(nanoseconds: Int64((Double(count) - tokens) / rate * 1e9) + 1)
    }

    /// Adapts the rate to a report of the other side.
    mutating func report(_ account: SentPackets.Account, roundTrip: Moment.Span, now: Moment) {
        let span = Double((now - reportedAt).nanoseconds) / 1e9
        let isUsed = Double(sentSince) >= 0.5 * rate * span
        sentSince = 0
        reportedAt = now
        let share = Double(account.lost) / Double(max(account.received + account.lost, 1))
        let isLossy = account.lost >= 3 && share > Self.toleratedLoss
        guard !isLossy, account.delay < Self.toleratedDelay else {
            guard now - slowedAt >= Self.slowInterval else { return }
            slowedAt = now
            isStarting = false
            rate = max(rate * 0.7, Self.leastRate)
            return
        }
        guard isUsed else { return }
        guard isStarting else {
            rate = min(rate * 1.05, Self.mostRate)
            return
        }
        // Reports that come together would make the path seem quicker than it is, so they count as one round trip.
        let time = max(span, Double(roundTrip.nanoseconds) / 1e9)
        let delivered = time > 0 ? Double(account.received) * packetLength / time : 0
        rate = min(max(rate * 1.5, 2 * delivered), Self.mostRate)
    }
}
