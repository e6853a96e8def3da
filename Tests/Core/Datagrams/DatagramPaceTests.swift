import Testing

@testable import NighCore

@Suite("The pace of a datagram path") struct DatagramPaceTests {
    /// The rate at the start, in bytes a second.
    private static let firstRate = 2.5e6

    private static func account(
        received: Int, lost: Int = 0, delay: Moment.Span = .zero
    ) -> SentPackets.Account {
        SentPackets.Account(received: received, lost: lost, allLost: lost, delay: delay)
    }

    @Test("lets 64,000 bytes leave at once, and then as many as its rate allows, however long it has rested")
    func burst() {
        var pace = DatagramPace(now: .at(0))
        func admitted(_ counts: Int..., at moment: Moment) -> [Bool] {
            counts.map { pace.admits($0, packets: 1, now: moment) }
        }
        #expect(admitted(64_000, 1, at: .at(0)) == [true, false])
        // The rate is 2,500 bytes a millisecond.
        #expect(admitted(2_600, 2_400, at: .at(1)) == [false, true])
        #expect(admitted(64_001, 64_000, at: .at(10_000)) == [false, true])
    }

    @Test("says when there will be room for a message, to the microsecond")
    func room() {
        var pace = DatagramPace(now: .at(0))
        #expect(pace.opensAt(64_000) == .at(0))
        let isFirstSent = pace.admits(64_000, packets: 1, now: .at(0))
        let opening = pace.opensAt(10_000)
        let early = opening + .init(nanoseconds: -1_000)
        let outcomes = [early, opening].map { pace.admits(10_000, packets: 1, now: $0) }
        #expect(isFirstSent && outcomes == [false, true])
    }

    @Test("becomes twice what the path has delivered, while nothing is lost or late")
    func growth() {
        // A report that comes within a round trip of the one before counts as one of a whole round trip.
        for (span, roundTrip) in [(10, 10), (1, 10), (10, 1)] as [(Int64, Int64)] {
            var pace = DatagramPace(now: .at(0))
            for _ in 0..<60 { _ = pace.admits(1_000, packets: 1, now: .at(0)) }
            pace.report(
                Self.account(received: 60), roundTrip: .milliseconds(roundTrip), now: .at(span))
            // 60,000 bytes in 10 ms are 6 million in a second. Lengths are averaged, so it is a little less.
            #expect(pace.rate > 11.9e6 && pace.rate < 12e6, "\(span) ms, \(roundTrip) ms")
        }
    }

    @Test("grows by half after a report that took no time, which says nothing of what the path carries")
    func noTime() {
        var pace = DatagramPace(now: .at(0))
        _ = pace.admits(64_000, packets: 64, now: .at(0))
        pace.report(Self.account(received: 64), roundTrip: .zero, now: .at(0))
        #expect(pace.rate == 1.5 * Self.firstRate)
    }

    @Test("counts what was delivered in packets, also if a message took several")
    func parts() {
        let rates = [(8_000, 8), (1_000, 1)].map { count, packets in
            var pace = DatagramPace(now: .at(0))
            for _ in 0..<8 { _ = pace.admits(count, packets: packets, now: .at(0)) }
            pace.report(Self.account(received: 64), roundTrip: .milliseconds(1), now: .at(1))
            return pace.rate
        }
        #expect(rates[0] == rates[1] && rates[0] > 50e6)
    }

    @Test("grows only if half of it was used: by half at first, and by 5 % once it has fallen")
    func use() {
        for hasFallen in [false, true] {
            // Half of what the rate allows in 10 ms.
            let half = hasFallen ? 8_750 : 12_500
            for count in [half - 1, half] {
                var pace = DatagramPace(now: .at(0))
                if hasFallen {
                    pace.report(
                        Self.account(received: 1, lost: 3), roundTrip: .milliseconds(10), now: .at(0))
                }
                let before = pace.rate
                _ = pace.admits(count, packets: 1, now: .at(0))
                pace.report(Self.account(received: 1), roundTrip: .milliseconds(10), now: .at(10))
                let growth = count < half ? 1 : hasFallen ? 1.05 : 1.5
                #expect(pace.rate == before * growth, "\(count) bytes")
                // What was sent before the last report does not count again.
                pace.report(Self.account(received: 1), roundTrip: .milliseconds(10), now: .at(11))
                #expect(pace.rate == before * growth, "\(count) bytes")
            }
        }
    }

    @Test("falls by 30 % if more than 15 % of at least three lost packets, or a delay of 40 ms, is reported")
    func falling() {
        let late = Moment.Span.milliseconds(40)
        let almostLate = Moment.Span(nanoseconds: late.nanoseconds - 1)
        let cases = [
            (Self.account(received: 85, lost: 15), false), (Self.account(received: 84, lost: 16), true),
            (Self.account(received: 2, lost: 2), false), (Self.account(received: 2, lost: 3), true),
            (Self.account(received: 9, delay: almostLate), false),
            (Self.account(received: 9, delay: late), true),
        ]
        for (account, falls) in cases {
            var pace = DatagramPace(now: .at(0))
            pace.report(account, roundTrip: .milliseconds(10), now: .at(10))
            #expect(pace.rate == (falls ? Self.firstRate * 0.7 : Self.firstRate), "\(account)")
        }
    }

    @Test("falls at most once in 100 ms, and never below 32,000 bytes a second")
    func slowing() {
        var pace = DatagramPace(now: .at(0))
        func rateAfterLoss(at milliseconds: Int64) -> Double {
            pace.report(
                Self.account(received: 5, lost: 5), roundTrip: .milliseconds(10), now: .at(milliseconds))
            return pace.rate
        }
        let first = rateAfterLoss(at: 10)
        #expect(first == Self.firstRate * 0.7)
        #expect(rateAfterLoss(at: 109) == first)
        #expect(rateAfterLoss(at: 110) == first * 0.7)
        for number in 3...30 as ClosedRange<Int64> { _ = rateAfterLoss(at: number * 100) }
        #expect(pace.rate == 32e3)
    }

    @Test("never exceeds 4 billion bytes a second, of which those of 20 ms may leave at once")
    func most() {
        var pace = DatagramPace(now: .at(0))
        _ = pace.admits(64_000, packets: 64, now: .at(0))
        pace.report(Self.account(received: 10_000_000), roundTrip: .milliseconds(1), now: .at(1))
        #expect(pace.rate == 4e9)
        let outcomes = [80_000_001, 80_000_000].map {
            pace.admits($0, packets: 80_000, now: .at(1_000))
        }
        #expect(outcomes == [false, true])
    }
}
