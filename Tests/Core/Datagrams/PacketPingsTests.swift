import Testing

@testable import NighCore

@Suite("The pings of a datagram path") struct PacketPingsTests {
    private static func ping(_ call: UInt64) -> PacketPings.Request {
        PacketPings.Request(call: call, padding: 40)
    }

    private static func failure(_ call: UInt64, _ failure: PacketPings.Failure) -> PacketPings.Result {
        PacketPings.Result(call: call, outcome: .failure(failure))
    }

    @Test("leave once and are answered once, and their round trip begins when they leave")
    func answer() {
        var pings = PacketPings()
        pings.add(Self.ping(3), token: 7, now: .at(0))
        let isAnsweredEarly = pings.answered(7, now: .at(10))
        let first = pings.depart(now: .at(20))
        let second = pings.depart(now: .at(30))
        #expect(first == [PacketPings.PingToSend(token: 7, padding: 40)] && second.isEmpty)
        let isAnswered = pings.answered(7, now: .at(35))
        let isAnsweredAgain = pings.answered(7, now: .at(36))
        #expect(!isAnsweredEarly && isAnswered && !isAnsweredAgain)
        let results = pings.takeResults()
        #expect(results == [PacketPings.Result(call: 3, outcome: .success(.milliseconds(15)))])
        #expect(!pings.hasResults && pings.count == 0)
    }

    @Test("fail after 5 s: as lost if they have left, and as blocked if they still wait for the path")
    func timeout() {
        var pings = PacketPings()
        #expect(pings.deadline == .never)
        pings.add(Self.ping(1), token: 1, now: .at(0))
        _ = pings.depart(now: .at(1_000))
        pings.add(Self.ping(2), token: 2, now: .at(1_500))
        #expect(pings.deadline == .at(6_000))
        pings.timeArrived(now: .at(5_999))
        #expect(!pings.hasResults)
        pings.timeArrived(now: .at(6_000))
        let first = pings.takeResults()
        #expect(first == [Self.failure(1, .lost)] && pings.deadline == .at(6_500))
        pings.timeArrived(now: .at(6_500))
        let second = pings.takeResults()
        #expect(second == [Self.failure(2, .blocked)] && pings.deadline == .never)
    }

    @Test("that wait fail when the path is blocked, and those that have left stay under way")
    func block() {
        var pings = PacketPings()
        pings.add(Self.ping(1), token: 1, now: .at(0))
        _ = pings.depart(now: .at(0))
        pings.add(Self.ping(2), token: 2, now: .at(0))
        pings.block()
        #expect(pings.count == 2)
        let results = pings.takeResults()
        #expect(results == [Self.failure(2, .blocked)] && pings.count == 1)
        let abandoned = pings.abandon()
        #expect(abandoned.map(\.call) == [1] && pings.count == 0)
    }
}
