import Testing

@testable import NighCore

@Suite("The sent packets of a datagram path") struct SentPacketsTests {
    /// Sends a packet each millisecond, beginning with the one of `first`.
    private static func send(_ numbers: Range<Int64>, in packets: inout SentPackets) {
        for number in numbers { packets.note(now: .at(number)) }
    }

    private static func report(
        _ highest: UInt64, received: UInt64, delay: UInt32 = 0
    ) -> DatagramContent.Report {
        DatagramContent.Report(highest: highest, delay: delay, received: received)
    }

    @Test("are lost if they have not come before a newer one, until they come late")
    func loss() {
        var packets = SentPackets()
        Self.send(0..<30, in: &packets)
        let reports = [
            Self.report(9, received: 8), Self.report(19, received: 18), Self.report(21, received: 21),
        ]
        let accounts = reports.map { packets.take($0, now: .at(40)) }
        #expect(accounts.map { $0?.received } == [8, 10, 3])
        #expect(accounts.map { $0?.lost } == [2, 0, 0])
        #expect(accounts.map { $0?.allLost } == [2, 2, 1])
    }

    @Test(
        "are not accounted for by a report that is older than the last one, or claims what cannot be",
        arguments: [(8, 8), (9, 7), (11, 13), (20, 9)] as [(UInt64, UInt64)])
    func impossible(highest: UInt64, received: UInt64) {
        var packets = SentPackets()
        Self.send(0..<20, in: &packets)
        let first = packets.take(Self.report(9, received: 8), now: .at(30))
        let refused = packets.take(Self.report(highest, received: received), now: .at(30))
        #expect(first != nil && refused == nil)
        // The same again, or all that were sent, can be.
        let again = packets.take(Self.report(9, received: 8), now: .at(30))
        let all = packets.take(Self.report(19, received: 20), now: .at(30))
        #expect(again != nil && all?.allLost == 0)
    }

    @Test("took the time since they left, less that for which the receiver kept its report")
    func roundTrips() {
        var packets = SentPackets()
        Self.send(0..<30, in: &packets)
        let reports = [(9, 19, 0), (19, 59, 25_000), (20, 59, 60_000)] as [(UInt64, Int64, UInt32)]
        let accounts = reports.map { highest, now, delay in
            packets.take(Self.report(highest, received: highest, delay: delay), now: .at(now))
        }
        #expect(accounts.map { $0?.roundTrip } == [.milliseconds(10), .milliseconds(15), .zero])
        #expect(accounts.map { $0?.delay } == [.zero, .milliseconds(5), .zero])
    }

    @Test("are compared with the quickest of ten seconds, and then no longer with that one")
    func quickest() {
        var packets = SentPackets()
        let trips = [(0, 10), (9_999, 30), (10_000, 30), (10_001, 35)] as [(Int64, Int64)]
        let delays = trips.enumerated().map { number, trip -> Moment.Span? in
            packets.note(now: .at(trip.0 - trip.1))
            let report = Self.report(UInt64(number), received: UInt64(number) + 1)
            return packets.take(report, now: .at(trip.0))?.delay
        }
        #expect(delays == [.zero, .milliseconds(20), .zero, .milliseconds(5)])
    }

    @Test("tell nothing about the time if 256 more have left since")
    func forgotten() {
        for (count, isKnown) in [(256, true), (257, false)] as [(Int64, Bool)] {
            var packets = SentPackets()
            Self.send(0..<count, in: &packets)
            let account = packets.take(Self.report(0, received: 1), now: .at(count))
            #expect((account?.roundTrip != nil) == isKnown && account?.received == 1)
        }
    }
}
