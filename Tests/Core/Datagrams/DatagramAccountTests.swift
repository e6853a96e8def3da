import NighTestKit
import Testing

@testable import NighCore

/// Tests the counts of a path's two sides: packets that have come, packets that were sent, and the pace that follows.
@Suite struct DatagramAccountTests {
    @Test func `Of each number, the window of packet numbers admits one, as a set of the newest 1,024 does`()
    {
        for seed in 0..<20 as Range<UInt64> {
            var random = SeededGenerator(seed: seed)
            var window = ReplayWindow()
            var seen: Set<UInt64> = []
            var end: UInt64 = 0
            for _ in 0..<5_000 {
                let reach = UInt64.random(in: 0..<(random.oneIn(50) ? 3_000 : 40), using: &random)
                let number = random.oneIn(3) ? end + reach : end - min(end, reach)
                let isNew = number >= end || (end - number <= 1_024 && !seen.contains(number))
                #expect(window.admits(number) == isNew)
                #expect(window.isDuplicate(number) == (number < end && end - number <= 1_024 && !isNew))
                guard isNew else { continue }
                window.note(number)
                seen.insert(number)
                end = max(end, number + 1)
            }
        }
    }

    // MARK: Receipts

    @Test func `Receipts are reported at once after 64 packets or 16 KiB, counted from the last report`() {
        var receipts = PacketReceipts(now: .at(0))
        let manyPackets = [Int](repeating: 200, count: 64)
        let manyBytes = [10_000, 6_383, 1]
        for sizes in [manyPackets, manyBytes, manyBytes, manyPackets] {
            let isDue = sizes.map { receipts.noteReportable(byteCount: $0, now: .at(0)) }
            #expect(isDue.firstIndex(of: true) == sizes.count - 1)
            _ = receipts.takeReport(highest: 100, now: .at(0))
        }
    }

    @Test
    func `Receipts are reported 50 ms after the first packet that calls for it; others do not postpone that`()
    {
        var receipts = PacketReceipts(now: .at(0))
        #expect(receipts.deadline == .never)
        for moment in [5, 20, 54] as [Int64] {
            _ = receipts.noteReportable(byteCount: 100, now: .at(moment))
        }
        #expect(receipts.deadline == .at(55))
        _ = receipts.takeReport(highest: 2, now: .at(55))
        #expect(receipts.deadline == .never)
        _ = receipts.noteReportable(byteCount: 100, now: .at(70))
        #expect(receipts.deadline == .at(120))
    }

    @Test(
        "A report says how many packets have come, and for how many microseconds the highest was not reported"
    )
    func content() {
        var receipts = PacketReceipts(now: .at(0))
        receipts.note(isHighest: true, now: .at(10))
        receipts.note(isHighest: false, now: .at(20))
        let first = receipts.takeReport(highest: 7, now: .at(25))
        #expect(first == DatagramContent.Report(highest: 7, delay: 15_000, received: 2))
        receipts.note(isHighest: true, now: .at(30))
        // The delay has 32 bits: a longer one is reported as the longest.
        let second = receipts.takeReport(highest: 8, now: .at(10_000_000))
        #expect(second == DatagramContent.Report(highest: 8, delay: .max, received: 3))
    }

    // MARK: Sent packets

    /// The packets of a path that has sent one each millisecond.
    private static func sent(_ count: Int64) -> SentPackets {
        var packets = SentPackets()
        for number in 0..<count { packets.note(now: .at(number)) }
        return packets
    }

    private static func report(
        _ highest: UInt64, received: UInt64, delay: UInt32 = 0
    ) -> DatagramContent.Report {
        DatagramContent.Report(highest: highest, delay: delay, received: received)
    }

    @Test func `Packets are lost if they have not come before a newer one, until they come late`() {
        var packets = Self.sent(30)
        let reports = [(9, 8), (19, 18), (21, 21)] as [(UInt64, UInt64)]
        let accounts = reports.map { packets.take(Self.report($0, received: $1), now: .at(40)) }
        #expect(accounts.map { $0?.received } == [8, 10, 3])
        #expect(accounts.map { $0?.lost } == [2, 0, 0])
        #expect(accounts.map { $0?.allLost } == [2, 2, 1])
    }

    @Test(arguments: [(8, 8), (9, 7), (11, 13), (20, 9)] as [(UInt64, UInt64)])
    func `A report that is older than the last one, or claims what cannot be, is refused`(
        highest: UInt64, received: UInt64
    ) {
        var packets = Self.sent(20)
        let reports = [(9, 8), (highest, received), (9, 8), (19, 20)]
        let accounts = reports.map { packets.take(Self.report($0, received: $1), now: .at(30)) }
        // A report that says nothing new is possible, and one that all packets have come.
        #expect(accounts.map { $0 != nil } == [true, false, true, true] && accounts[3]?.allLost == 0)
    }

    @Test
    func `A round trip takes the time since a packet left, less that for which the receiver kept its report`()
    {
        var packets = Self.sent(30)
        let reports = [(9, 19, 0), (19, 59, 25_000), (20, 59, 60_000)] as [(UInt64, Int64, UInt32)]
        let accounts = reports.map { highest, now, delay in
            packets.take(Self.report(highest, received: highest, delay: delay), now: .at(now))
        }
        #expect(accounts.map { $0?.roundTrip } == [.milliseconds(10), .milliseconds(15), .zero])
        #expect(accounts.map { $0?.delay } == [.zero, .milliseconds(5), .zero])
    }

    @Test func `A round trip is compared with the quickest of ten seconds, and then no longer with that one`()
    {
        var packets = SentPackets()
        let trips = [(0, 10), (9_999, 30), (10_000, 30), (10_001, 35)] as [(Int64, Int64)]
        let delays = trips.enumerated().map { number, trip -> Moment.Span? in
            packets.note(now: .at(trip.0 - trip.1))
            let report = Self.report(UInt64(number), received: UInt64(number) + 1)
            return packets.take(report, now: .at(trip.0))?.delay
        }
        #expect(delays == [.zero, .milliseconds(20), .zero, .milliseconds(5)])
    }

    @Test func `A packet tells nothing about the time if 256 more have left since`() {
        for (count, isKnown) in [(256, true), (257, false)] as [(Int64, Bool)] {
            var packets = Self.sent(count)
            let account = packets.take(Self.report(0, received: 1), now: .at(count))
            #expect((account?.roundTrip != nil) == isKnown && account?.received == 1)
        }
    }

    // MARK: The pace

    /// The rate at the start, in bytes a second.
    private static let firstRate = 2.5e6

    /// A pace, and reports about a path with a round trip of 10 ms.
    private struct Bench {
        var pace = DatagramPace(now: .at(0))

        mutating func admits(_ counts: Int..., packets: Int = 1, at moment: Moment = .at(0)) -> [Bool] {
            counts.map { pace.admits($0, packets: packets, now: moment) }
        }

        mutating func report(
            received: Int, lost: Int = 0, delay: Moment.Span = .zero, roundTrip: Int64 = 10, at moment: Int64
        ) {
            pace.report(
                SentPackets.Account(received: received, lost: lost, allLost: lost, delay: delay),
                roundTrip: .milliseconds(roundTrip), now: .at(moment))
        }
    }

    @Test
    func `64,000 bytes leave at once, and then as many as the rate allows, however long the path has rested`()
    {
        var bench = Bench()
        #expect(bench.pace.opensAt(64_000) == .at(0))
        #expect(bench.admits(64_000, 1) == [true, false])
        // The rate is 2,500 bytes a millisecond.
        #expect(bench.admits(2_600, 2_400, at: .at(1)) == [false, true])
        #expect(bench.admits(64_001, 64_000, at: .at(10_000)) == [false, true])
        let opening = bench.pace.opensAt(10_000)
        #expect(bench.admits(10_000, at: opening + .init(nanoseconds: -1_000)) == [false])
        #expect(bench.admits(10_000, at: opening) == [true])
    }

    @Test func `The rate becomes twice what the path has delivered, while nothing is lost or late`() {
        // A report that comes within a round trip of the one before counts as one of a whole round trip.
        for (span, roundTrip) in [(10, 10), (1, 10), (10, 1)] as [(Int64, Int64)] {
            var bench = Bench()
            for _ in 0..<60 { _ = bench.admits(1_000) }
            bench.report(received: 60, roundTrip: roundTrip, at: span)
            // 60,000 bytes in 10 ms are 6 million in a second. Lengths are averaged, so it is a little less.
            #expect(bench.pace.rate > 11.9e6 && bench.pace.rate < 12e6, "\(span) ms, \(roundTrip) ms")
        }
        // A report that took no time says nothing of what the path carries.
        var bench = Bench()
        _ = bench.admits(64_000, packets: 64)
        bench.report(received: 64, roundTrip: 0, at: 0)
        #expect(bench.pace.rate == 1.5 * Self.firstRate)
    }

    @Test func `Delivered bytes are counted in packets, also if a message took several`() {
        let rates = [(8_000, 8), (1_000, 1)].map { count, packets in
            var bench = Bench()
            for _ in 0..<8 { _ = bench.admits(count, packets: packets) }
            bench.report(received: 64, roundTrip: 1, at: 1)
            return bench.pace.rate
        }
        #expect(rates[0] == rates[1] && rates[0] > 50e6)
    }

    @Test func `The rate grows only if half of it was used: by half at first, and by 5 % once it has fallen`()
    {
        for hasFallen in [false, true] {
            // Half of what the rate allows in 10 ms.
            let half = hasFallen ? 8_750 : 12_500
            for count in [half - 1, half] {
                var bench = Bench()
                if hasFallen { bench.report(received: 1, lost: 3, at: 0) }
                let before = bench.pace.rate
                _ = bench.admits(count)
                bench.report(received: 1, at: 10)
                let growth = count < half ? 1 : hasFallen ? 1.05 : 1.5
                #expect(bench.pace.rate == before * growth, "\(count) bytes")
                // The packets that were sent before the last report do not count again.
                bench.report(received: 1, at: 11)
                #expect(bench.pace.rate == before * growth, "\(count) bytes")
            }
        }
    }

    @Test(
        "The rate falls by 30 % if more than 15 % of at least three lost packets, or 40 ms of delay, is reported"
    )
    func falling() {
        let late = Moment.Span.milliseconds(40)
        let almostLate = Moment.Span(nanoseconds: late.nanoseconds - 1)
        for (received, lost, delay, falls) in [
            (85, 15, .zero, false), (84, 16, .zero, true), (2, 2, .zero, false), (2, 3, .zero, true),
            (9, 0, almostLate, false), (9, 0, late, true),
        ] as [(Int, Int, Moment.Span, Bool)] {
            var bench = Bench()
            bench.report(received: received, lost: lost, delay: delay, at: 10)
            #expect(bench.pace.rate == (falls ? Self.firstRate * 0.7 : Self.firstRate), "\(lost) \(delay)")
        }
    }

    @Test func `The rate falls at most once in 100 ms, and never below 32,000 bytes a second`() {
        var bench = Bench()
        func rateAfterLoss(at milliseconds: Int64) -> Double {
            bench.report(received: 5, lost: 5, at: milliseconds)
            return bench.pace.rate
        }
        let first = rateAfterLoss(at: 10)
        #expect(first == Self.firstRate * 0.7)
        #expect(rateAfterLoss(at: 109) == first)
        #expect(rateAfterLoss(at: 110) == first * 0.7)
        for number in 3...30 as ClosedRange<Int64> { _ = rateAfterLoss(at: number * 100) }
        #expect(bench.pace.rate == 32e3)
    }

    @Test func `The rate never exceeds 4 billion bytes a second, of which those of 20 ms may leave at once`()
    {
        var bench = Bench()
        _ = bench.admits(64_000, packets: 64)
        bench.report(received: 10_000_000, roundTrip: 1, at: 1)
        #expect(bench.pace.rate == 4e9)
        #expect(bench.admits(80_000_001, 80_000_000, packets: 80_000, at: .at(1_000)) == [false, true])
    }
}
