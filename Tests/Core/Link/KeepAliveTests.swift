import Testing

@testable import NighCore

@Suite struct KeepAliveTests {
    private static let start = Moment(nanoseconds: 500)

    private func keepAlive(ask: Duration = .seconds(5), lose: Duration = .seconds(15)) -> KeepAlive {
        KeepAlive(pingAfter: ask, loseAfter: lose, now: Self.start)
    }

    private func check(
        _ verdict: KeepAlive.Verdict, _ expected: KeepAlive.Verdict,
        at location: SourceLocation = #_sourceLocation
    ) {
        #expect(verdict == expected, sourceLocation: location)
    }

    /// All verdicts about a peer that is silent from the start, each at the announced deadline.
    private func verdicts(of keepAlive: KeepAlive) -> [(KeepAlive.Verdict, Moment.Span)] {
        var keepAlive = keepAlive
        var verdicts: [(KeepAlive.Verdict, Moment.Span)] = []
        for _ in 0..<20 where verdicts.last?.0 != .giveUp {
            let deadline = keepAlive.deadline
            verdicts.append((keepAlive.check(at: deadline), deadline - Self.start))
        }
        return verdicts
    }

    @Test func aSilentPeerIsPingedSuspectedAndLostAtExactMoments() {
        let verdicts = verdicts(of: keepAlive())
        #expect(verdicts.map(\.0) == [.sendPing, .suspect, .giveUp])
        #expect(verdicts.map(\.1) == [.seconds(5), .seconds(10), .seconds(15)])
    }

    @Test func keepAliveWaitsUntilItsDeadline() {
        var keepAlive = keepAlive()
        for (deadline, verdict) in [(5, KeepAlive.Verdict.sendPing), (10, .suspect), (15, .giveUp)] {
            let moment = Self.start + .seconds(Int64(deadline))
            #expect(keepAlive.deadline == moment)
            check(keepAlive.check(at: moment + Moment.Span(nanoseconds: -1)), .wait)
            check(keepAlive.check(at: moment), verdict)
        }
    }

    @Test func aSignOfLifeRestartsTheKeepAlive() {
        var keepAlive = keepAlive()
        _ = keepAlive.check(at: Self.start + .seconds(5))
        let endedSuspicion = keepAlive.noteBytes(isWhole: true, at: Self.start + .seconds(6))
        #expect(!endedSuspicion)
        #expect(keepAlive.deadline == Self.start + .seconds(11))
        check(keepAlive.check(at: Self.start + .seconds(10)), .wait)
        check(keepAlive.check(at: Self.start + .seconds(11)), .sendPing)
        check(keepAlive.check(at: Self.start + .seconds(16)), .suspect)
        #expect(keepAlive.isSuspected)
        let endsSuspicion = keepAlive.noteBytes(isWhole: true, at: Self.start + .seconds(20))
        #expect(endsSuspicion)
        #expect(!keepAlive.isSuspected)
        #expect(keepAlive.deadline == Self.start + .seconds(25))
    }

    @Test func bytesThatNeverBecomeARecordDoNotCountForEver() {
        var keepAlive = keepAlive()
        for second in stride(from: 4, through: 60, by: 4) {
            _ = keepAlive.noteBytes(isWhole: false, at: Self.start + .seconds(Int64(second)))
        }
        // The last that counted came after 12 s, as the next comes after more than 15 s without a whole record.
        #expect(keepAlive.deadline == Self.start + .seconds(17))
        check(keepAlive.check(at: Self.start + .seconds(17)), .sendPing)
        _ = keepAlive.noteBytes(isWhole: true, at: Self.start + .seconds(18))
        _ = keepAlive.noteBytes(isWhole: false, at: Self.start + .seconds(33))
        #expect(keepAlive.deadline == Self.start + .seconds(38))
    }

    /// A loop that was blocked (a stopped process, a long computation) did not read, so its peers were not silent.
    @Test func aBlockedLoopDoesNotLosePeers() {
        var keepAlive = keepAlive()
        let late = Self.start + .seconds(100)
        check(keepAlive.check(at: late), .sendPing)
        check(keepAlive.check(at: late), .wait)
        #expect(keepAlive.deadline == late + .seconds(5))
        check(keepAlive.check(at: late + .seconds(5)), .suspect)
        // It is blocked once more: the answer may be waiting in the pipe.
        check(keepAlive.check(at: late + .seconds(6)), .wait)
        check(keepAlive.check(at: late + .seconds(10)), .giveUp)
    }

    @Test(arguments: [
        (Duration.zero, Duration.zero), (.zero, .seconds(15)), (.seconds(5), .zero),
        (.seconds(20), .seconds(15)),
        (.seconds(15), .seconds(15)), (.seconds(8), .seconds(15)), (.nanoseconds(1), .nanoseconds(1)),
        (.seconds(-1), .seconds(-1)), (.seconds(Int64.max), .seconds(Int64.max)),
    ])
    func noPeerIsLostBeforeItIsPinged(ask: Duration, lose: Duration) {
        let verdicts = verdicts(of: keepAlive(ask: ask, lose: lose))
        #expect(verdicts.map(\.0) == [.sendPing, .suspect, .giveUp], "\(verdicts)")
        #expect(zip(verdicts, verdicts.dropFirst()).allSatisfy { $0.1 <= $1.1 })
        if lose > ask, ask > .zero { #expect(verdicts.last?.1 == Moment.Span(lose)) }
    }
}

@Suite struct LinkKeepAliveTests {
    @Test func aSilentPeerIsPingedSuspectedAndLostAtExactMoments() throws {
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

    @Test func aQuietHealthyPeerIsNeverLost() throws {
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

    @Test func suspicionEndsWhenThePeerAnswers() throws {
        let pair = try LinkPair.open()
        let start = pair.now
        pair.accepting.isHeldUp = true
        try pair.pass(.seconds(14))
        pair.accepting.isHeldUp = false
        try pair.pass(.seconds(60))
        #expect(pair.dialling.machine.phase == .open)
        #expect(Array(pair.dialling.plainNotes.prefix(2)) == [.suspected, .responsiveAgain])
        #expect(pair.dialling.plainNotes.count == 2)
        #expect(pair.dialling.times.first == start + .seconds(10))
    }

    @Test func partsOfAFrameAreSignsOfLife() throws {
        let pair = try LinkPair.open()
        pair.accepting.isHeldUp = true
        pair.dialling.receive(Frames.header(FrameType.piece.rawValue, 1_000), now: pair.now)
        for _ in 0..<100 {
            try pair.pass(.seconds(4))
            pair.dialling.receive([1], now: pair.now)
        }
        #expect(pair.dialling.machine.phase == .open)
        #expect(!pair.dialling.notes.contains(.suspected))
    }

    @Test func zeroTimeoutsEndTheLinkWithoutAHang() throws {
        let pair = LinkPair(
            dialling: LinkPair.settings(seed: 1) {
                $0.pingAfter = .zero; $0.loseAfter = .zero
            })
        try pair.deliverAll()
        pair.accepting.isHeldUp = true
        try pair.pass(.seconds(1))
        #expect(pair.dialling.machine.phase == .closed)
    }
}

@Suite struct ControlWriterTests {
    /// A chunk of 64 bytes is filled except for its last seven. The next frame has eight.
    @Test func aFrameThatLacksOneByteOfRoomGetsAChunkOfItsOwn() {
        var writer = ControlWriter(chunkSize: 64, keepAtMost: 1)
        var frames = ByteQueue()
        writer.write(.unreliable, payload: [0xAA])
        for _ in 0..<13 { frames.append(writer.detachedHeader(.message, payloadLength: 1)) }
        frames.append(writer.standaloneFrame(.begin, number: 0x0102_0304))
        writer.drain(into: &frames)
        var bytes: [UInt8] = []
        while let slice = frames.popFirst() { bytes += slice.bytes }
        let header: [UInt8] = [0, 0, 1, FrameType.message.rawValue]
        let begin: [UInt8] = [0, 0, 4, FrameType.begin.rawValue, 1, 2, 3, 4]
        let unreliable: [UInt8] = [0, 0, 1, FrameType.unreliable.rawValue, 0xAA]
        #expect(bytes == Array(repeatElement(header, count: 13).joined()) + begin + unreliable)
    }

    @Test func framesComeOutInOrder() {
        var writer = ControlWriter()
        writer.write(.ping, payload: [1, 2])
        writer.write(.pong, payload: [])
        writer.reserve(.acknowledge, payloadLength: 1).storeBytes(of: 9, as: UInt8.self)
        #expect(writer.frameCount == 3)
        #expect(writer.byteCount == 6 + 4 + 5)
        var queue = ByteQueue()
        writer.drain(into: &queue)
        #expect(
            queue.bytes == Frames.frame(.ping, [1, 2]) + Frames.frame(.pong) + Frames.frame(.acknowledge, [9])
        )
        #expect(queue.sliceCount == 1, "frames that lie side by side leave as one slice")
        #expect(writer.byteCount == 0)
        #expect(writer.frameCount == 0)
        writer.write(.ping, payload: [3])
        writer.removeAll()
        #expect(writer.byteCount == 0)
        writer.drain(into: &queue)
        #expect(queue.byteCount == 15)
    }

    @Test func headersAndLooseFramesAreNotQueued() {
        var writer = ControlWriter()
        #expect(writer.detachedHeader(.piece, payloadLength: 70_000).bytes == Frames.header(0x14, 70_000))
        #expect(
            writer.standaloneFrame(.begin, number: .max).bytes == Frames.frame(.begin, [255, 255, 255, 255]))
        #expect(writer.byteCount == 0)
    }

    @Test func itsChunksAreReusedOnceTheyAreWritten() {
        var writer = ControlWriter()
        var chunks: Set<ObjectIdentifier> = []
        var alive: [Chunk] = []
        for _ in 0..<2_000 {
            writer.write(.acknowledge, payload: [UInt8](repeating: 1, count: 32))
            _ = writer.detachedHeader(.piece, payloadLength: 1)
            var queue = ByteQueue()
            writer.drain(into: &queue)
            guard let chunk = queue.first?.chunk, chunks.insert(ObjectIdentifier(chunk)).inserted else {
                continue
            }
            if alive.isEmpty { alive.append(chunk) }
        }
        // One chunk was held all the time; two others are used in turns.
        #expect(chunks.count <= 3)
    }

    @Test func writersShareTheirChunks() throws {
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

    @Test func chunksInUseAreNotOverwritten() {
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

    @Test func aFrameLargerThanAChunkFits() {
        var writer = ControlWriter()
        let payload = [UInt8](repeating: 4, count: 5_000)
        writer.write(.ping, payload: payload)
        writer.write(.ping, payload: [1])
        var queue = ByteQueue()
        writer.drain(into: &queue)
        #expect(queue.bytes == Frames.frame(.ping, payload) + Frames.frame(.ping, [1]))
    }
}
