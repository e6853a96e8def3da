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

    @Test("slow their own writer and no other while nobody reads")
    func unread() throws {
        let pair = StreamPair(StreamTerms(streams: 4, window: 10_000))
        let (unread, other) = (try pair.odd.open("unread"), try pair.odd.open("read"))
        var written = 0
        for _ in 0..<10 {
            written += try unread.put(bytes(10_000))
            try pair.settle()
        }
        // One window waits at the writer, one at the reader; the last frame may exceed the credit.
        #expect(written >= 20_000 && written <= 20_000 + 16_384)
        for round in 0..<10 {
            #expect(try other.put(bytes(9_000, round)) == 9_000)
            try pair.settle()
            #expect(pair.even.opened[1].take().bytes == bytes(9_000, round))
            try pair.settle()
        }
        var read = pair.even.opened[0].take().bytes.count
        for _ in 0..<3 {
            try pair.settle()
            read += pair.even.opened[0].take().bytes.count
        }
        #expect(read == written)
    }

    @Test(
        "grow for files while these come faster than they are read, and for nothing else",
        arguments: [(StreamPurpose.files, 4), (.program, 1)])
    func windows(of purpose: StreamPurpose, growth: Int) throws {
        let window = 100_000
        let pair = StreamPair(StreamTerms(streams: 4, window: window, for: [.files]))
        let stream = try pair.odd.open("x", for: purpose)
        var (written, read, most) = (0, 0, 0)
        for _ in 0..<40 {
            written += try stream.put(bytes(window))
            try pair.settle()
            most = max(most, written - read)
            if case .bytes(let bytes) = pair.even.opened[0].poll() { read += bytes.count }
        }
        // One window more waits at the writer; the last frame may exceed the credit.
        let expected = (growth + 1) * window
        #expect(most >= expected && most <= expected + 16_384, "\(most)")
    }

    @Test("stay as they are while the program reads what comes, also for files")
    func keepingUp() throws {
        let window = 100_000
        let pair = StreamPair(StreamTerms(streams: 4, window: window, for: [.files]))
        let stream = try pair.odd.open("x", for: .files)
        for round in 0..<40 {
            #expect(try stream.put(bytes(window / 4, round)) == window / 4)
            try pair.settle()
            #expect(pair.even.opened[0].take().bytes == bytes(window / 4, round))
            try pair.settle()
        }
        var written = 0
        for _ in 0..<10 {
            written += try stream.put(bytes(window))
            try pair.settle()
        }
        // One window waits at the writer, one at the reader; the last frame may exceed the credit.
        #expect(written >= 2 * window && written <= 2 * window + 16_384, "\(written)")
    }

    @Test(
        "double for files once half of what was granted has come and is not read, and not a byte earlier",
        arguments: [(8_000, 40_000), (7_999, 24_000)])
    func half(unread: Int, granted: Int) throws {
        let pair = StreamPair(StreamTerms(streams: 4, window: 16_000, for: [.files]))
        let stream = try pair.odd.open("x", for: .files)
        // Each is one frame, and is read by itself.
        for count in [8_000, unread] {
            #expect(try stream.put(bytes(count)) == count)
            try pair.settle()
        }
        guard case .bytes(let read) = pair.even.opened[0].poll() else {
            Issue.record("nothing has come")
            return
        }
        #expect(read.count == 8_000)
        pair.even.write()
        #expect(pair.even.wire.bytes == credit(granted))
        withExtendedLifetime(stream) {}
    }

    @Test("move on by what was read in small parts, with something written between")
    func readsAndWrites() throws {
        let pair = StreamPair()
        let stream = try pair.odd.open("talk")
        for round in 0..<40 {
            try #require(try stream.put(bytes(1_000)) == 1_000, "no credit in round \(round)")
            try pair.settle()
            #expect(pair.even.opened[0].take().bytes.count == 1_000)
            try pair.even.opened[0].put([7])
            try pair.settle()
        }
        #expect(stream.take().bytes.count == 40)
    }

    @Test("move on once a quarter of them was read, in one piece or several, and not a byte earlier")
    func quarter() throws {
        let pair = StreamPair(StreamTerms(streams: 4, window: 16_000))
        let stream = try pair.odd.open("x")
        let steps: [(count: Int, granted: Int?)] = [
            (3_999, nil), (1, 20_000), (3_999, nil), (2, 24_001), (4_000, 28_001),
        ]
        for step in steps {
            #expect(try stream.put(bytes(step.count)) == step.count)
            try pair.settle()
            #expect(pair.even.opened[0].take().bytes.count == step.count)
            pair.even.write()
            #expect(pair.even.wire.bytes == step.granted.map(credit) ?? [])
        }
        withExtendedLifetime(stream) {}
    }

    @Test(
        "may be exceeded by the last frame, but none may begin once all that was granted has come",
        arguments: [(9, true), (10, false), (12, false)])
    func overrun(come: Int, mayMoreCome: Bool) throws {
        let pair = StreamPair(StreamTerms(streams: 4, window: 10))
        try pair.odd.receive(Frames.frame(.streamControl, StreamControl.open(name: "x").payload(for: 2)))
        try pair.odd.receive(Frames.frame(.streamData, [0, 0, 0, 2] + bytes(come)))
        let next = Frames.frame(.streamData, [0, 0, 0, 2] + bytes(12))
        if mayMoreCome {
            try pair.odd.receive(next)
            #expect(pair.odd.opened[0].take().bytes == bytes(come) + bytes(12))
        } else {
            #expect(throws: WireError.malformed("more bytes of a stream than were allowed")) {
                try pair.odd.receive(next)
            }
        }
    }

    @Test("bound to the byte what waits to be sent")
    func room() throws {
        let pair = StreamPair(StreamTerms(streams: 4, window: 10_000))
        let stream = try pair.odd.open("x")
        #expect(try stream.put(bytes(7_000)) == 7_000)
        #expect(try stream.put(bytes(7_000)) == 3_000)
        #expect(try stream.put(bytes(7_000)) == 0)
        // All of it leaves, and waits at the reader. What is written now has no credit.
        try pair.settle()
        #expect(try stream.put(bytes(20_000)) == 10_000)
        #expect(try stream.put([1]) == 0)
    }

    /// The first frame takes 16,376 bytes.
    @Test(
        "let a waiting writer go on once half of them is free, and not with the first frame",
        arguments: [(32_752, true), (32_754, false)])
    func waitingWriter(window: Int, goesOn: Bool) throws {
        let pair = StreamPair(StreamTerms(streams: 4, window: window))
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
}
