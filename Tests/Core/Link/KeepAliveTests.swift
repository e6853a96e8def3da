import Testing

@testable import NighCore

@Suite struct KeepAliveTests {
    private static let start = Moment(nanoseconds: 500)

    /// A keep-alive whose verdicts a test expects at moments of its own, in seconds from the start.
    private struct Bench {
        var keepAlive: KeepAlive

        init(ask: Duration = .seconds(5), lose: Duration = .seconds(15)) {
            keepAlive = KeepAlive(pingAfter: ask, loseAfter: lose, now: start)
        }

        mutating func check(
            _ expected: [(Int64, KeepAlive.Verdict)], at location: SourceLocation = #_sourceLocation
        ) {
            for (second, verdict) in expected {
                let found = keepAlive.check(at: start + .seconds(second))
                #expect(found == verdict, "after \(second) s", sourceLocation: location)
            }
        }

        /// Notes bytes; returns whether they end a suspicion.
        mutating func note(isWhole: Bool, at second: Int64) -> Bool {
            keepAlive.noteBytes(isWhole: isWhole, at: start + .seconds(second))
        }

        var deadline: Moment.Span { keepAlive.deadline - start }

        /// All verdicts about a peer that is silent from the start, each at the announced deadline and not before.
        mutating func verdicts() -> [(KeepAlive.Verdict, Moment.Span)] {
            var verdicts: [(KeepAlive.Verdict, Moment.Span)] = []
            for _ in 0..<20 where verdicts.last?.0 != .giveUp {
                let deadline = keepAlive.deadline
                let early = keepAlive.check(at: deadline + Moment.Span(nanoseconds: -1))
                #expect(early == .wait)
                verdicts.append((keepAlive.check(at: deadline), deadline - start))
            }
            return verdicts
        }
    }

    @Test(arguments: [
        (Duration.seconds(5), Duration.seconds(15)), (.zero, .zero), (.zero, .seconds(15)),
        (.seconds(5), .zero), (.seconds(20), .seconds(15)), (.seconds(15), .seconds(15)),
        (.seconds(8), .seconds(15)), (.nanoseconds(1), .nanoseconds(1)), (.seconds(-1), .seconds(-1)),
        (.seconds(Int64.max), .seconds(Int64.max)),
    ])
    func `No peer is lost before it is pinged`(ask: Duration, lose: Duration) {
        var bench = Bench(ask: ask, lose: lose)
        let verdicts = bench.verdicts()
        #expect(verdicts.map(\.0) == [.sendPing, .suspect, .giveUp], "\(verdicts)")
        #expect(zip(verdicts, verdicts.dropFirst()).allSatisfy { $0.1 <= $1.1 })
        if lose > ask, ask > .zero { #expect(verdicts.last?.1 == Moment.Span(lose)) }
        if ask == .seconds(5), lose == .seconds(15) {
            #expect(verdicts.map(\.1) == [.seconds(5), .seconds(10), .seconds(15)])
        }
    }

    @Test func `A sign of life restarts the keep alive`() {
        var bench = Bench()
        bench.check([(5, .sendPing)])
        let endsNothing = bench.note(isWhole: true, at: 6)
        #expect(!endsNothing && bench.deadline == .seconds(11))
        bench.check([(10, .wait), (11, .sendPing), (16, .suspect)])
        #expect(bench.keepAlive.isSuspected)
        let endsSuspicion = bench.note(isWhole: true, at: 20)
        #expect(endsSuspicion && !bench.keepAlive.isSuspected && bench.deadline == .seconds(25))
    }

    @Test func `Bytes that never become a record do not count for ever`() {
        var bench = Bench()
        for second in stride(from: 4, through: 60 as Int64, by: 4) {
            _ = bench.note(isWhole: false, at: second)
        }
        // The last that counted came after 12 s, as the next comes after more than 15 s without a whole record.
        #expect(bench.deadline == .seconds(17))
        bench.check([(17, .sendPing)])
        _ = bench.note(isWhole: true, at: 18)
        _ = bench.note(isWhole: false, at: 33)
        #expect(bench.deadline == .seconds(38))
    }

    /// A loop that was blocked (a stopped process, a long computation) did not read, so its peers were not silent.
    @Test func `A blocked loop does not lose peers`() {
        var bench = Bench()
        bench.check([(100, .sendPing), (100, .wait)])
        #expect(bench.deadline == .seconds(105))
        // Once it suspects the peer, it is blocked once more: the answer may be waiting in the pipe.
        bench.check([(105, .suspect), (106, .wait), (110, .giveUp)])
    }
}

@Suite struct LinkKeepAliveTests {
    @Test func `A silent peer is pinged suspected and lost at exact moments`() throws {
        let pair = try LinkPair.open()
        let start = pair.now
        pair.accepting.isHeldUp = true
        // The other end receives the pings, so it does not lose its peer.
        try pair.pass(.seconds(5))
        #expect(pair.dialling.notes.isEmpty)
        try pair.pass(.seconds(30))
        #expect(
            pair.dialling.notes == [
                .suspected, .closed(.init(cause: .silent, code: .silent, isByPeer: false)),
            ])
        #expect(pair.dialling.times == [start + .seconds(10), start + .seconds(15)])
        #expect(pair.accepting.closed == .init(cause: .silent, code: .silent, isByPeer: true))
    }

    @Test func `A quiet healthy peer is never lost`() throws {
        let pair = try LinkPair.open()
        let before = pair.dialling.machine.statistics.bytesSent
        try pair.pass(.seconds(12 * 3_600))
        for end in [pair.dialling, pair.accepting] {
            #expect(end.machine.phase == .open)
            #expect(end.plainNotes.isEmpty)
        }
        // At most some 20 bytes every 5 s: keep-alive alone causes little traffic.
        let bytes = pair.dialling.machine.statistics.bytesSent - before
        #expect(bytes <= 12 * 720 * 2 * 12)
    }

    @Test func `Suspicion ends when the peer answers`() throws {
        let pair = try LinkPair.open()
        let start = pair.now
        pair.accepting.isHeldUp = true
        try pair.pass(.seconds(14))
        pair.accepting.isHeldUp = false
        try pair.pass(.seconds(60))
        #expect(pair.dialling.machine.phase == .open)
        #expect(pair.dialling.plainNotes == [.suspected, .responsiveAgain])
        #expect(pair.dialling.times.first == start + .seconds(10))
    }

    @Test func `Parts of a frame are signs of life`() throws {
        let pair = try LinkPair.open()
        pair.accepting.isHeldUp = true
        pair.dialling.receive(Frames.header(FrameType.piece.rawValue, 1_000))
        for _ in 0..<100 {
            try pair.pass(.seconds(4))
            pair.dialling.receive([1])
        }
        #expect(pair.dialling.machine.phase == .open)
        #expect(!pair.dialling.notes.contains(.suspected))
    }

    @Test func `Zero timeouts end the link without a hang`() throws {
        let settings = LinkPair.settings(seed: 1) {
            $0.pingAfter = .zero
            $0.loseAfter = .zero
        }
        let pair = LinkPair(dialling: settings)
        try pair.deliverAll()
        pair.accepting.isHeldUp = true
        try pair.pass(.seconds(1))
        #expect(pair.dialling.machine.phase == .closed)
    }

    /// Memory that only other traffic needs is released after each ping and pong, and kept while there is such traffic.
    @Test func `A resting link makes its channel release memory`() throws {
        // The link is used only on this thread.
        nonisolated(unsafe) let channel = CountingChannel()
        let pair = try LinkPair.open { channel }
        #expect(channel.releases == 0, "the hellos are traffic")
        try pair.pass(.seconds(5))
        let first = channel.releases
        // Once when the ping has left, and once when its answer has arrived.
        #expect(first >= 2)
        try pair.pass(.seconds(5))
        let resting = channel.releases
        #expect(resting >= first + 2)
        // 256 bytes at once still count as keep-alive.
        for _ in 0..<2 { pair.dialling.receive(.message, [UInt8](repeating: 1, count: 252)) }
        #expect(channel.releases == resting + 2)
        pair.dialling.receive(.message, [UInt8](repeating: 1, count: 300))
        for _ in 0..<10 { pair.dialling.receive(.message, [1]) }
        #expect(channel.releases == resting + 2)
        try pair.pass(.seconds(6))
        #expect(channel.releases > resting + 2)
    }
}

@Suite struct ControlWriterTests {
    /// A chunk of 64 bytes is filled except for its last seven. The next frame has eight.
    @Test func `A frame that lacks one byte of room gets a chunk of its own`() {
        var writer = ControlWriter(chunkSize: 64, keepAtMost: 1)
        var frames = ByteQueue()
        writer.write(.unreliable, payload: [0xAA])
        for _ in 0..<13 { frames.append(writer.detachedHeader(.message, payloadLength: 1)) }
        frames.append(writer.standaloneFrame(.begin, number: 0x0102_0304))
        writer.drain(into: &frames)
        let header: [UInt8] = [0, 0, 1, FrameType.message.rawValue]
        let begin: [UInt8] = [0, 0, 4, FrameType.begin.rawValue, 1, 2, 3, 4]
        let unreliable: [UInt8] = [0, 0, 1, FrameType.unreliable.rawValue, 0xAA]
        #expect(frames.bytes == Array(repeatElement(header, count: 13).joined()) + begin + unreliable)
    }

    @Test func `Frames come out in order`() {
        var writer = ControlWriter()
        writer.write(.ping, payload: [1, 2])
        writer.write(.pong, payload: [])
        writer.reserve(.acknowledge, payloadLength: 1).storeBytes(of: 9, as: UInt8.self)
        // Frames that are written apart are not queued.
        #expect(writer.detachedHeader(.piece, payloadLength: 70_000).bytes == Frames.header(0x14, 70_000))
        #expect(
            writer.standaloneFrame(.begin, number: .max).bytes == Frames.frame(.begin, [255, 255, 255, 255]))
        #expect(writer.frameCount == 3 && writer.byteCount == 6 + 4 + 5)
        var queue = ByteQueue()
        writer.drain(into: &queue)
        #expect(
            queue.bytes == Frames.frame(.ping, [1, 2]) + Frames.frame(.pong) + Frames.frame(.acknowledge, [9])
        )
        #expect(queue.sliceCount == 1, "frames that lie side by side leave as one slice")
        #expect(writer.byteCount == 0 && writer.frameCount == 0)
        writer.write(.ping, payload: [3])
        writer.removeAll()
        #expect(writer.byteCount == 0)
        writer.drain(into: &queue)
        #expect(queue.byteCount == 15)
    }

    @Test func `Writers share their chunks and reuse them`() throws {
        let chunks = ControlChunks()
        var writers = [ControlWriter(chunks), ControlWriter(chunks)]
        var used: Set<ObjectIdentifier> = []
        for index in [0, 1, 0, 1] {
            var queue = ByteQueue()
            writers[index].write(.ping, payload: [UInt8(index)])
            writers[index].drain(into: &queue)
            #expect(queue.bytes == Frames.frame(.ping, [UInt8(index)]))
            used.insert(ObjectIdentifier(try #require(queue.first).chunk))
        }
        #expect(used.count == 1)
    }

    @Test func `Chunks in use are not overwritten`() {
        var generator = SeededGenerator(seed: 3)
        var writer = ControlWriter()
        var kept: [(ByteQueue, [UInt8])] = []
        for round in 0..<3_000 {
            let payload = Frames.random(Int.random(in: 0...60, using: &generator), &generator)
            writer.write(.ping, payload: payload)
            var queue = ByteQueue()
            writer.drain(into: &queue)
            kept.append((queue, Frames.frame(.ping, payload)))
            if round % 50 == 49 {
                for (queue, bytes) in kept {
                    let isSame = queue.bytes == bytes
                    #expect(isSame)
                }
                kept.removeFirst(kept.count - Int.random(in: 0...5, using: &generator))
            }
        }
    }

    @Test func `A frame larger than a chunk fits`() {
        var writer = ControlWriter()
        let payload = [UInt8](repeating: 4, count: 5_000)
        writer.write(.ping, payload: payload)
        writer.write(.ping, payload: [1])
        var queue = ByteQueue()
        writer.drain(into: &queue)
        #expect(queue.bytes == Frames.frame(.ping, payload) + Frames.frame(.ping, [1]))
    }
}
