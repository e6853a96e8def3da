import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite("Streams of sessions") struct StreamTests {
    private func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 13 &+ $0 >> 9) }
    }

    /// Opens a stream. Call it on the loop, where it is opened at once.
    private func open(
        _ name: String, from member: SessionProbe, to other: SessionProbe
    ) throws -> ByteStream {
        nonisolated(unsafe) var opened: Result<ByteStream, NighError>?
        member.session.openStream(named: name, to: other.id) { opened = $0 }
        return try #require(opened).get()
    }

    private func streams(of member: SessionProbe) -> [ByteStream] {
        member.events.compactMap { if case .streamOpened(let stream) = $0 { stream } else { nil } }
    }

    /// Writes all of `bytes` and reads them at the other end, while `disturb` happens every few milliseconds.
    private func copy(
        _ bytes: [UInt8], from writer: ByteStream, to reader: ByteStream, in place: Neighbourhood,
        disturb: (Int) throws -> Void = { _ in }
    ) throws -> ByteStream.Content {
        var content = ByteStream.Content()
        var written = 0
        for step in 0..<20_000 where !content.hasEnded && content.error == nil {
            if written < bytes.count {
                written += try writer.put(Array(bytes[written..<min(bytes.count, written + 50_000)]))
                if written == bytes.count { writer.finish() }
            }
            try disturb(step)
            try place.run(.milliseconds(5))
            let more = reader.take()
            content.bytes += more.bytes
            content.hasEnded = more.hasEnded
            content.error = more.error
        }
        return content
    }

    @Test("leave nothing in memory when they are used after the end of the conversation")
    func released() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        var stream: ByteStream? = try open("camera", from: puma, to: lynx)
        weak let port = stream?.port
        try place.run(.seconds(1))
        puma.session.disconnect(lynx.id) { _ in }
        try place.run(.seconds(1))
        stream?.cancelReading(because: "nobody looks")
        stream = nil
        try place.run(.seconds(1))
        #expect(port == nil)
    }

    @Test(
        "make leaving fail if the other program has not read all that was written",
        arguments: [false, true])
    func leftUnread(isFinished: Bool) throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        let stream = try open("camera", from: puma, to: lynx)
        for _ in 0..<4 {
            _ = try stream.put(bytes(200_000))
            try place.run(.seconds(1))
        }
        if isFinished { stream.finish() }
        puma.session.disconnect(lynx.id) { puma.outcomes.append($0) }
        try place.run(.seconds(6))
        #expect(puma.state(of: lynx.id) == .available)
        let advice = try #require(puma.failure?.advice)
        #expect(advice.contains("were not acknowledged") && !advice.hasPrefix("0 "), "\(advice)")
    }

    @Test("carry every byte once and in order over one link after another")
    func cuts() throws {
        let place = Neighbourhood()
        var plan = FaultPlan()
        plan.delay = .milliseconds(20)
        plan.bytesPerSecond = 256 << 10
        let (puma, lynx) = try place.pair(plan: plan)
        let stream = try open("camera", from: puma, to: lynx)
        try place.run(.milliseconds(100))
        let other = try #require(streams(of: lynx).first)
        let content = bytes(3 << 20)
        let result = try copy(content, from: stream, to: other, in: place) { step in
            switch step % 1_000 {
            case 300: puma.faults.cut()
            case 800: lynx.faults.cut()
            default: break
            }
        }
        #expect(result == .init(bytes: content, hasEnded: true))
        let statistics = try #require(puma.statistics.peers[lynx.id])
        #expect(statistics.reconnects >= 3 && statistics.streamsOpened == 1)
        #expect(statistics.streamBytesSent == content.count)
        #expect(lynx.statistics.peers[puma.id]?.streamBytesReceived == content.count)
    }

    @Test("know that the link of their conversation is lost, until there is another one")
    func reconnecting() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        let stream = try open("camera", from: puma, to: lynx)
        #expect(!stream.isReconnecting)
        for member in [puma, lynx] { member.faults.plan.refuse = .all }
        puma.faults.cut()
        try place.run(.seconds(1))
        #expect(puma.state(of: lynx.id) == .reconnecting && stream.isReconnecting)
        for member in [puma, lynx] { member.faults.plan = .none }
        try place.run(.seconds(5))
        #expect(puma.state(of: lynx.id) == .connected && !stream.isReconnecting)
    }

    @Test("move to a better transport with the conversation")
    func moves() throws {
        let ways = TwoWays()
        var closed = FaultPlan()
        closed.refuse = .all
        let (puma, lynx) = (ways.join(plan: closed), ways.join(plan: closed))
        try ways.connect(puma, lynx)
        nonisolated(unsafe) var opened: ByteStream?
        puma.session.openStream(named: "x", to: lynx.id) { opened = try? $0.get() }
        let stream = try #require(opened)
        try stream.put(bytes(100_000))
        try ways.run(.seconds(1))
        #expect(puma.transport(to: lynx) == "slow")
        for member in [puma, lynx] { member.fast.plan = .none }
        try ways.run(.seconds(60))
        #expect(puma.transport(to: lynx) == "fast")
        try stream.put(bytes(1_000))
        stream.finish()
        try ways.run(.seconds(1))
        let other = try #require(
            lynx.probe.events.compactMap { if case .streamOpened(let stream) = $0 { stream } else { nil } }
                .first)
        #expect(other.take() == .init(bytes: bytes(100_000) + bytes(1_000), hasEnded: true))
    }

    @Test("are refused with a clear error by a session without streams, with which everything else works")
    func unsupported() throws {
        let place = Neighbourhood()
        let puma = place.join("puma")
        // As a session of version 0.1: no ability, no field in its hello.
        let lynx = place.join("lynx") { $0.limits.streams = 0 }
        try place.run(.seconds(1))
        puma.invite(lynx)
        try place.run(.seconds(1))
        for (member, other) in [(puma, lynx), (lynx, puma)] {
            let error = #expect(throws: NighError.self) { try open("x", from: member, to: other) }
            #expect(error?.cause == .unsupported("streams"))
        }
        try puma.session.trySend(Array("hello".utf8), to: lynx.id)
        puma.faults.cut()
        try place.run(.seconds(5))
        #expect(lynx.texts == ["hello"])
        #expect(puma.state(of: lynx.id) == .connected)
    }

    @Test("do not hold up messages while nobody reads them")
    func messages() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        let unread = try (0..<10).map { try open("\($0)", from: puma, to: lynx) }
        for stream in unread { while try stream.put(bytes(100_000)) > 0 { try place.run(.milliseconds(10)) } }
        try puma.session.trySend(Array("quick".utf8), to: lynx.id)
        try place.run(.milliseconds(50))
        #expect(lynx.texts == ["quick"])
        #expect(streams(of: lynx).count == 10)
    }

    @Test("deliver what was written when the program leaves, and then end for both")
    func leaving() throws {
        let place = Neighbourhood()
        var plan = FaultPlan()
        plan.delay = .milliseconds(50)
        let (puma, lynx) = try place.pair(plan: plan)
        let stream = try open("x", from: puma, to: lynx)
        try stream.put(bytes(200_000))
        puma.session.disconnect(lynx.id)
        #expect(throws: NighError.self) { try stream.put([1]) }
        try place.run(.seconds(3))
        let other = try #require(streams(of: lynx).first)
        #expect(other.take() == .init(bytes: bytes(200_000), error: .peerLeft))
        #expect(stream.take() == .init(error: .left))
        #expect(puma.state(of: lynx.id) == .available)
    }

    @Test("end with the conversation when the peer does not come back")
    func lost() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        let stream = try open("x", from: puma, to: lynx)
        try place.run(.milliseconds(50))
        for member in [puma, lynx] {
            member.faults.block()
            member.faults.cut()
        }
        try stream.put([1, 2])
        try place.run(.seconds(20))
        #expect(stream.take() == .init(error: .linkLost))
        #expect(streams(of: lynx).first?.take() == .init(error: .linkLost))
    }

    @Test("cannot be opened to a peer that is not connected, or under a name that is too long")
    func refused() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        #expect(throws: NighError.self) { try open(String(repeating: "x", count: 256), from: puma, to: lynx) }
        #expect(throws: NighError.self) { try open("a\n", from: puma, to: lynx) }
        let stranger = place.join("stranger")
        #expect(throws: NighError.self) { try open("x", from: puma, to: stranger) }
    }

    @Test("leave nothing behind, however many were opened and closed")
    func many() throws {
        let place = Neighbourhood()
        let (puma, lynx) = try place.pair()
        for number in 0..<500 {
            let stream = try open("\(number)", from: puma, to: lynx)
            try stream.put([1, 2, 3])
            stream.finish()
            try place.run(.milliseconds(1))
            let other = streams(of: lynx)[number]
            #expect(other.take() == .init(bytes: [1, 2, 3], hasEnded: true))
            other.finish()
            try place.run(.milliseconds(1))
        }
        #expect(puma.statistics.peers[lynx.id]?.streamsOpened == 500)
        #expect(puma.session.inconsistencies.isEmpty && lynx.session.inconsistencies.isEmpty)
        #expect(try #require(puma.session.inspection(of: lynx.id)).streams == 0)
        #expect(try #require(lynx.session.inspection(of: puma.id)).streams == 0)
    }
}
