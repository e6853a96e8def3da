import Testing

@testable import NighCore
@testable import NighTestKit

/// How much of a stream may be under way, and how much may wait on either side.
@Suite("The windows of streams") struct StreamWindowTests {
    private func bytes(_ count: Int, _ seed: Int = 0) -> [UInt8] { StreamPair.bytes(count, seed) }

    /// The frame that grants this many bytes of the first stream.
    private func credit(_ bytes: Int) -> [UInt8] {
        Frames.frame(.streamControl, StreamControl.credit(UInt64(bytes)).payload(for: 1))
    }

    /// Writes this many bytes several times, and lets all pass that may; returns how many the stream has taken.
    private func write(_ count: Int, times: Int, to stream: ByteStream, of pair: StreamPair) throws -> Int {
        var written = 0
        for _ in 0..<times {
            written += try stream.put(bytes(count))
            try pair.settle()
        }
        return written
    }

    @Test func `slow their own writer and no other while nobody reads`() throws {
        let pair = StreamPair()
        let (unread, other) = (try pair.open("unread"), try pair.open("read"))
        let written = try write(10_000, times: 10, to: unread.odd, of: pair)
        // One window waits at the writer, one at the reader; the last frame may exceed the credit.
        #expect(written >= 20_000 && written <= 20_000 + 16_384)
        for round in 0..<10 {
            #expect(try other.odd.put(bytes(9_000, round)) == 9_000)
            try pair.settle()
            #expect(other.even.take().bytes == bytes(9_000, round))
            try pair.settle()
        }
        var read = 0
        for _ in 0..<4 {
            read += unread.even.take().bytes.count
            try pair.settle()
        }
        #expect(read == written)
    }

    @Test(arguments: [(StreamPurpose.files, 4), (.program, 1)])
    func `grow for files while these come faster than they are read, and for nothing else`(
        of purpose: StreamPurpose, growth: Int
    ) throws {
        let window = 100_000
        let pair = StreamPair(window: window, for: [.files])
        let (stream, other) = try pair.open(for: purpose)
        var (written, read, most) = (0, 0, 0)
        for _ in 0..<40 {
            written += try write(window, times: 1, to: stream, of: pair)
            most = max(most, written - read)
            if case .bytes(let bytes) = other.poll() { read += bytes.count }
        }
        // One window more waits at the writer; the last frame may exceed the credit.
        let expected = (growth + 1) * window
        #expect(most >= expected && most <= expected + 16_384, "\(most)")
    }

    @Test func `stay as they are while the program reads what comes, also for files`() throws {
        let window = 100_000
        let pair = StreamPair(window: window, for: [.files])
        let (stream, other) = try pair.open(for: .files)
        for round in 0..<40 {
            #expect(try stream.put(bytes(window / 4, round)) == window / 4)
            try pair.settle()
            #expect(other.take().bytes == bytes(window / 4, round))
            try pair.settle()
        }
        let written = try write(window, times: 10, to: stream, of: pair)
        #expect(written >= 2 * window && written <= 2 * window + 16_384, "\(written)")
    }

    @Test(arguments: [(8_000, 40_000), (7_999, 24_000)])
    func `double for files once half of what was granted has come and is not read, and not a byte earlier`(
        unread: Int, granted: Int
    ) throws {
        let pair = StreamPair(window: 16_000, for: [.files])
        let (stream, other) = try pair.open(for: .files)
        // Each is one frame, and is read by itself.
        for count in [8_000, unread] { #expect(try write(count, times: 1, to: stream, of: pair) == count) }
        guard case .bytes(let read) = other.poll() else {
            Issue.record("nothing has come")
            return
        }
        #expect(read.count == 8_000)
        pair.even.write()
        #expect(pair.even.wire.bytes == credit(granted))
    }

    @Test func `move on by what was read in small parts, with something written between`() throws {
        let pair = StreamPair()
        let (stream, other) = try pair.open()
        for round in 0..<40 {
            try #require(try stream.put(bytes(1_000)) == 1_000, "no credit in round \(round)")
            try pair.settle()
            #expect(other.take().bytes.count == 1_000)
            try other.put([7])
            try pair.settle()
        }
        #expect(stream.take().bytes.count == 40)
    }

    @Test func `move on once a quarter of them was read, in one piece or several, and not a byte earlier`()
        throws
    {
        let pair = StreamPair(window: 16_000)
        let (stream, other) = try pair.open()
        for (count, granted) in [
            (3_999, nil), (1, 20_000), (3_999, nil), (2, 24_001), (4_000, 28_001),
        ] as [(Int, Int?)] {
            #expect(try write(count, times: 1, to: stream, of: pair) == count)
            #expect(other.take().bytes.count == count)
            pair.even.write()
            #expect(pair.even.wire.bytes == granted.map(credit) ?? [])
        }
    }

    @Test(arguments: [(9, true), (10, false), (12, false)])
    func `may be exceeded by the last frame, but none may begin once all that was granted has come`(
        come: Int, mayMoreCome: Bool
    ) throws {
        let side = StreamPair(window: 10).odd
        try side.receive(.open(name: "x"), for: 2)
        try side.receive(Frames.frame(.streamData, [0, 0, 0, 2] + bytes(come)))
        let next = Frames.frame(.streamData, [0, 0, 0, 2] + bytes(12))
        if mayMoreCome {
            try side.receive(next)
            #expect(side.opened[0].take().bytes == bytes(come) + bytes(12))
        } else {
            #expect(throws: WireError.malformed("more bytes of a stream than were allowed")) {
                try side.receive(next)
            }
        }
    }

    @Test func `bound to the byte what waits to be sent`() throws {
        let pair = StreamPair()
        let stream = try pair.odd.open("x")
        #expect(try (0..<3).map { _ in try stream.put(bytes(7_000)) } == [7_000, 3_000, 0])
        // All of it leaves, and waits at the reader. What is written now has no credit.
        try pair.settle()
        #expect(try stream.put(bytes(20_000)) == 10_000)
        #expect(try stream.put([1]) == 0)
    }

    /// The first frame takes 16,376 bytes.
    @Test(arguments: [(32_752, true), (32_754, false)])
    func `let a waiting writer go on once half of them is free, and not with the first frame`(
        window: Int, goesOn: Bool
    ) throws {
        let pair = StreamPair(window: window)
        let loop = VirtualEventLoop()
        let stream = try pair.odd.open("x")
        #expect(try stream.put(bytes(window)) == window)
        nonisolated(unsafe) var hasGoneOn = false  // the loop is virtual: one thread
        stream.notify(bytes: false, room: true, on: loop) { hasGoneOn = true }
        try loop.runQueued()
        #expect(!hasGoneOn)
        guard case .frame(_, let count)? = stream.port.takeOutput(credit: true) else {
            Issue.record("nothing to send")
            return
        }
        try loop.runQueued()
        #expect(count == 16_376 && hasGoneOn == goesOn)
        _ = stream.port.takeOutput(credit: true)
        try loop.runQueued()
        #expect(hasGoneOn)
    }

    // MARK: Windows that follow their link

    /// The size of a window of 256 KiB at first, after it got bytes for some seconds at this rate, in pieces of 16 KiB.
    @Test(
        arguments: [
            // 2 MB in each round trip; a fast and long link; a slow one; a fast and short one.
            (100e6, .milliseconds(20), 2_000_000...4_194_304),
            (1e9, .milliseconds(200), 4_194_304...4_194_304), (2e5, .milliseconds(40), 262_144...262_144),
            (200e6, .init(nanoseconds: 500_000), 262_144...262_144),
        ] as [(Double, Moment.Span, ClosedRange<UInt64>)])
    func `of forwarded connections grow to what the link carries in two round trips, within limits`(
        bytesPerSecond: Double, roundTrip: Moment.Span, expected: ClosedRange<UInt64>
    ) {
        var window = StreamWindow(256 << 10, for: .forward)
        var now = Moment.at(0)
        while now < .at(10_000) {
            // The other side sends no more than the window in each round trip.
            let rate = min(bytesPerSecond, Double(window.size) / (Double(roundTrip.nanoseconds) / 1e9))
            now = now + Moment.Span(nanoseconds: Int64(16_384 / rate * 1e9))
            _ = window.note(received: 16_384, at: now, roundTrip: roundTrip, room: 1 << 30)
        }
        #expect(expected.contains(window.size), "\(window.size)")
    }

    @Test func `grow once half of them comes in a round trip, and not with a byte less`() {
        var window = StreamWindow(100, for: .forward)
        func comes(_ count: Int, at moment: Int64) -> UInt64 {
            window.note(received: count, at: .at(moment), roundTrip: .milliseconds(10), room: 1_000)
        }
        // The first round trip begins with what comes first, which does not count.
        #expect(comes(100, at: 0) == 0 && comes(49, at: 10) == 0 && comes(49, at: 20) == 0)
        #expect(comes(50, at: 30) == 100)
    }

    @Test func `do not grow beyond the room that they are given`() {
        var window = StreamWindow(100, for: .forward)
        func comes(at moment: Int64, room: UInt64) -> UInt64 {
            window.note(received: 100, at: .at(moment), roundTrip: .milliseconds(10), room: room)
        }
        #expect(comes(at: 0, room: 99) == 0 && comes(at: 10, room: 99) == 0)
        #expect(comes(at: 20, room: 100) == 100 && window.size == 200 && window.growth == 100)
    }

    @Test func `grow only by what the windows of other streams leave, and give it back at their end`() throws
    {
        let window = 1 << 20
        let pair = StreamPair(streams: 8, window: window, for: [.forward])
        for table in [pair.odd.table, pair.even.table] { table.linkChanged(roundTrip: .seconds(1)) }
        let streams = try (0..<3).map { number in
            let (stream, other) = try pair.open("\(number + 1)", for: .forward)
            // 8 MiB in each of five round trips.
            for _ in 0..<40 {
                #expect(try write(window, times: 1, to: stream, of: pair) == window)
                #expect(other.take().bytes.count == window)
                pair.even.now = pair.even.now + .milliseconds(125)
            }
            return (stream, other)
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
