import NighTestKit
import Testing

@testable import NighCore

/// Tests the trials of a path: how long packets may be, where the other side is, and how long a ping takes.
@Suite struct DatagramTrialTests {
    @Test func `The header of a packet has a connection and a number, and is missing if a byte of it is`() {
        var packet = [UInt8](repeating: 0, count: 16)
        packet.withUnsafeMutableBytes {
            DatagramPacket.writeHeader(connection: 0x0102, number: 0x0304, to: $0)
        }
        #expect(packet == [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4])
        packet.withUnsafeBytes { bytes in
            #expect(DatagramPacket.connection(of: bytes) == 0x0102)
            #expect(DatagramPacket.number(of: bytes) == 0x0304)
            #expect(DatagramPacket.connection(of: .init(rebasing: bytes[..<15])) == nil)
        }
    }

    // MARK: Pings

    private static func ping(_ call: UInt64) -> PacketPings.Request {
        PacketPings.Request(call: call, padding: 40)
    }

    private static func failure(_ call: UInt64, _ failure: PacketPings.Failure) -> PacketPings.Result {
        PacketPings.Result(call: call, outcome: .failure(failure))
    }

    @Test func `Pings leave once and are answered once, and their round trip begins when they leave`() {
        var pings = PacketPings()
        pings.add(Self.ping(3), token: 7, now: .at(0))
        let isAnsweredEarly = pings.answered(7, now: .at(10))
        let departed = [pings.depart(now: .at(20)), pings.depart(now: .at(30))]
        #expect(departed == [[PacketPings.PingToSend(token: 7, padding: 40)], []])
        let isAnswered = [pings.answered(7, now: .at(35)), pings.answered(7, now: .at(36))]
        #expect(!isAnsweredEarly && isAnswered == [true, false])
        #expect(pings.takeResults() == [PacketPings.Result(call: 3, outcome: .success(.milliseconds(15)))])
        #expect(!pings.hasResults && pings.count == 0)
    }

    @Test
    func `Pings fail after 5 s: as lost if they have left, and as blocked if they still wait for the path`() {
        var pings = PacketPings()
        #expect(pings.deadline == .never)
        pings.add(Self.ping(1), token: 1, now: .at(0))
        _ = pings.depart(now: .at(1_000))
        pings.add(Self.ping(2), token: 2, now: .at(1_500))
        #expect(pings.deadline == .at(6_000))
        pings.timeArrived(now: .at(5_999))
        #expect(!pings.hasResults)
        pings.timeArrived(now: .at(6_000))
        #expect(pings.takeResults() == [Self.failure(1, .lost)] && pings.deadline == .at(6_500))
        pings.timeArrived(now: .at(6_500))
        #expect(pings.takeResults() == [Self.failure(2, .blocked)] && pings.deadline == .never)
    }

    @Test func `Pings that wait fail when the path is blocked, and those that have left stay under way`() {
        var pings = PacketPings()
        pings.add(Self.ping(1), token: 1, now: .at(0))
        _ = pings.depart(now: .at(0))
        pings.add(Self.ping(2), token: 2, now: .at(0))
        pings.block()
        #expect(pings.count == 2)
        #expect(pings.takeResults() == [Self.failure(2, .blocked)] && pings.count == 1)
        #expect(pings.abandon().map(\.call) == [1] && pings.count == 0)
    }

    // MARK: Lengths

    private static func sizes(limit: Int) -> PacketSizes {
        var sizes = PacketSizes()
        sizes.limit(to: limit)
        return sizes
    }

    @Test(arguments: [1_200, 1_391, 1_392, 1_471, 1_472, 8_952])
    func `The search tries one length after another, up to what both sides take`(limit: Int) {
        var sizes = Self.sizes(limit: limit)
        var tried: [Int] = []
        var probe = sizes.begin(token: 0, now: .at(0))
        while let current = probe, tried.count < 10 {
            tried.append(current.length)
            probe = sizes.answered(token: current.token + 1, now: .at(0))
        }
        #expect(tried == [1_392, 1_452, 1_472, 4_052, 8_952].filter { $0 <= limit })
        #expect(sizes.longest == (tried.last ?? 1_200))
        #expect(sizes.hasBegun && sizes.deadline == .never)
    }

    @Test
    func `The search sends a probe three times, 250 ms apart, and takes no answer once it has given up`() {
        var sizes = Self.sizes(limit: 8_952)
        let probe = sizes.begin(token: 7, now: .at(0))
        #expect(probe == PacketSizes.Probe(length: 1_392, token: 7))
        for moment in [250, 500] as [Int64] {
            #expect(sizes.deadline == .at(moment))
            #expect(sizes.timeArrived(now: .at(moment)) == probe)
        }
        #expect(sizes.deadline == .at(750) && sizes.isProbe(7))
        #expect(sizes.timeArrived(now: .at(750)) == nil && !sizes.isProbe(7))
        #expect(sizes.deadline == .never && sizes.longest == 1_200)
    }

    @Test(
        "The search leaves out lengths that did not pass, until packets have the length that every path carries"
    )
    func again() {
        var sizes = Self.sizes(limit: 1_472)
        _ = sizes.begin(token: 1, now: .at(0))
        #expect(sizes.isProbe(1))
        _ = sizes.answered(token: 2, now: .at(0))
        for moment in [250, 500, 750] as [Int64] { _ = sizes.timeArrived(now: .at(moment)) }
        sizes.cancel()
        #expect(!sizes.hasBegun && !sizes.isProbe(2) && sizes.deadline == .never && sizes.longest == 1_392)
        #expect(sizes.begin(token: 3, now: .at(1_000)) == nil)
        sizes.shrink()
        #expect(!sizes.hasBegun && sizes.longest == 1_200)
        #expect(sizes.begin(token: 4, now: .at(2_000))?.length == 1_392)
        #expect(sizes.answered(token: 5, now: .at(2_000))?.length == 1_452)
        sizes.cancel()
        #expect(!sizes.hasBegun && !sizes.isProbe(5) && sizes.deadline == .never)
    }

    // MARK: The other side's address

    private let home = DatagramSource(1)
    private let elsewhere = DatagramSource(2)

    /// A destination to which packets of 100 bytes have come from elsewhere.
    private struct Moved {
        var destination = PacketDestination()
        var generator = SeededGenerator(seed: 1)

        init() {
            destination.begin(at: DatagramSource(1))
            note(DatagramSource(2), 100)
        }

        mutating func note(_ place: DatagramSource, _ count: Int) {
            destination.note(place, byteCount: count, generator: &generator)
        }

        mutating func probe(_ count: Int = 40) -> (token: UInt64, place: DatagramSource)? {
            destination.takeProbe(byteCount: count)
        }
    }

    @Test func `Packets go to the place of the offer until another one has answered`() throws {
        var moved = Moved()
        #expect(moved.destination.place == home && moved.destination.hasCandidate)
        let probe = moved.probe()
        let (token, place) = try #require(probe)
        #expect(place == elsewhere)
        let isMovedByAnother = moved.destination.noteAnswer(token &+ 1)
        #expect(!isMovedByAnother && moved.destination.place == home)
        let isMoved = moved.destination.noteAnswer(token)
        #expect(isMoved && moved.destination.place == elsewhere && !moved.destination.hasCandidate)
        let isMovedAgain = moved.destination.noteAnswer(token)
        #expect(!isMovedAgain)
    }

    @Test(
        "A place gets no more bytes than came from it before it has answered, questions and answers together")
    func budget() {
        var moved = Moved()
        let first = moved.destination.answerPlace(elsewhere, byteCount: 60)
        let (tooLong, second) = (moved.probe(41), moved.probe())
        let third = moved.destination.answerPlace(elsewhere, byteCount: 1)
        #expect(first == elsewhere && tooLong == nil && second != nil)
        // An answer that may not go there goes where all packets go.
        #expect(third == home)
        moved.note(elsewhere, 1)
        #expect(moved.destination.answerPlace(elsewhere, byteCount: 1) == elsewhere)
    }

    @Test func `Packets stay where they went if packets come from there again`() throws {
        var moved = Moved()
        let probe = moved.probe()
        moved.note(home, 50)
        #expect(!moved.destination.hasCandidate)
        let isMoved = moved.destination.noteAnswer(try #require(probe).token)
        #expect(!isMoved && moved.destination.place == home)
    }

    @Test func `A third place is asked with another token, and with no more bytes than came from it`() throws
    {
        var moved = Moved()
        let first = moved.probe()
        let last = DatagramSource(3)
        moved.note(last, 40)
        let (second, more) = (moved.probe(), moved.probe(1))
        #expect(second?.place == last && more == nil)
        #expect(try #require(first).token != second?.token)
        #expect(moved.destination.answerPlace(elsewhere, byteCount: 1) == home)
    }
}
