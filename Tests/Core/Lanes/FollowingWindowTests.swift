import Testing

@testable import NighCore

/// How windows grow with the link that carries their streams.
@Suite("A window that follows its link") struct FollowingWindowTests {
    private let start = Moment(nanoseconds: 0)
    private let room: UInt64 = 1 << 30

    /// Lets a window of 256 KiB at first get bytes at this rate, in pieces of 16 KiB, and returns its size at the end.
    private func size(
        after time: Moment.Span, bytesPerSecond: Double, roundTrip: Moment.Span
    ) -> UInt64 {
        var window = StreamWindow(256 << 10, for: .forward)
        var now = start
        while now < start + time {
            // The other side sends no more than the window in each round trip.
            let rate = min(bytesPerSecond, Double(window.size) / (Double(roundTrip.nanoseconds) / 1e9))
            now = now + Moment.Span(nanoseconds: Int64(16_384 / rate * 1e9))
            _ = window.note(received: 16_384, at: now, roundTrip: roundTrip, room: room)
        }
        return window.size
    }

    @Test("grows to what the link carries in two round trips, and not on and on")
    func followsLink() {
        // 2 MB in each round trip.
        let size = size(after: .seconds(10), bytesPerSecond: 100e6, roundTrip: .milliseconds(20))
        #expect(size >= 2_000_000 && size <= 4 << 20)
    }

    @Test("has a largest size, however fast the link is")
    func largest() {
        #expect(size(after: .seconds(10), bytesPerSecond: 1e9, roundTrip: .milliseconds(200)) == 4 << 20)
    }

    @Test("stays as it is on a slow link, and on a fast one that is short")
    func stays() {
        #expect(
            size(after: .seconds(60), bytesPerSecond: 200_000, roundTrip: .milliseconds(40)) == 256 << 10)
        #expect(
            size(after: .seconds(2), bytesPerSecond: 200e6, roundTrip: .init(nanoseconds: 500_000)) == 256
                << 10)
    }

    @Test("does not grow beyond the room that it is given")
    func boundedRoom() {
        var window = StreamWindow(100, for: .forward)
        func comes(at moment: Int64, room: UInt64) -> UInt64 {
            window.note(
                received: 100, at: start + .milliseconds(moment), roundTrip: .milliseconds(10), room: room)
        }
        #expect(comes(at: 0, room: 99) == 0 && comes(at: 10, room: 99) == 0)
        #expect(comes(at: 20, room: 100) == 100 && window.size == 200 && window.growth == 100)
    }

    @Test("grows only by what the windows of other streams leave, and gives it back at its end")
    func growthLimit() throws {
        let window = 1 << 20
        let pair = StreamPair(StreamTerms(streams: 8, window: window, for: [.forward]))
        for table in [pair.odd.table, pair.even.table] { table.linkChanged(roundTrip: .seconds(1)) }
        /// Sends 8 MiB in each of five round trips.
        func fill(_ stream: ByteStream, _ other: ByteStream) throws {
            for _ in 0..<40 {
                try stream.put(StreamPair.bytes(window))
                try pair.settle()
                #expect(other.take().bytes.count == window)
                pair.even.now = pair.even.now + .milliseconds(125)
            }
        }
        var streams: [(ByteStream, ByteStream)] = []
        for number in 0..<3 {
            let stream = try pair.odd.open("\(number + 1)", for: .forward)
            try pair.settle()
            streams.append((stream, try #require(pair.even.opened.last)))
            try fill(stream, streams[number].1)
        }
        #expect(pair.even.table.windowGrowth == StreamTable.growthLimit)
        for (stream, other) in streams {
            stream.finish()
            other.finish()
        }
        try pair.settle()
        for (_, other) in streams { #expect(other.take().hasEnded) }
        try pair.settle()
        #expect(pair.even.table.windowGrowth == 0 && pair.even.table.count == 0)
    }
}
