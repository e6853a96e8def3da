import NighMemory
import NighTestKit
import Testing

@testable import NighCore

@Suite("Streams of sessions") struct StreamTests {
    private let network = SimulatedNetwork()

    private func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 13 &+ $0 >> 9) }
    }

    /// Writes all of `bytes` and reads them at the other end, while `disturb` happens every few milliseconds.
    private func copy(
        _ bytes: [UInt8], from writer: ByteStream, to reader: ByteStream,
        disturb: (Int) throws -> Void
    ) throws -> ByteStream.Content {
        var content = ByteStream.Content()
        var written = 0
        for step in 0..<20_000 where !content.hasEnded && content.error == nil {
            if written < bytes.count {
                written += try writer.put(Array(bytes[written..<min(bytes.count, written + 50_000)]))
                if written == bytes.count { writer.finish() }
            }
            try disturb(step)
            try network.run(for: .milliseconds(5))
            let more = reader.take()
            content.bytes += more.bytes
            content.hasEnded = more.hasEnded
            content.error = more.error
        }
        return content
    }

    @Test func `leave nothing in memory when they are used after the end of the conversation`() throws {
        let (puma, lynx) = try network.connectedPair()
        var stream: ByteStream? = try puma.openStream("camera", to: lynx.id)
        weak let port = stream?.port
        try network.run(for: .seconds(1))
        try network.disconnect(puma, from: lynx)
        stream?.cancelReading(because: "nobody looks")
        stream = nil
        try network.run(for: .seconds(1))
        #expect(port == nil)
    }

    @Test(arguments: [false, true])
    func `make leaving fail if the other program has not read all that was written`(isFinished: Bool) throws {
        let (puma, lynx) = try network.connectedPair()
        let stream = try puma.openStream("camera", to: lynx.id)
        for _ in 0..<4 {
            _ = try stream.put(bytes(200_000))
            try network.run(for: .seconds(1))
        }
        if isFinished { stream.finish() }
        puma.disconnect(lynx)
        try network.run(for: .seconds(6))
        #expect(puma.state(of: lynx.id) == .available)
        let advice = try #require(puma.failure?.advice)
        #expect(advice.contains("were not acknowledged") && !advice.hasPrefix("0 "), "\(advice)")
    }

    @Test func `carry every byte once and in order over one link after another`() throws {
        let (puma, lynx) = try network.connectedPair(plan: try FaultPlan(parsing: "delay=20ms,rate=256k"))
        let stream = try puma.openStream("camera", to: lynx.id)
        try network.run(for: .milliseconds(100))
        let other = try #require(lynx.streams.first)
        let content = bytes(3 << 20)
        let result = try copy(content, from: stream, to: other) { step in
            switch step % 1_000 {
            case 300: puma.faults.cut()
            case 800: lynx.faults.cut()
            default: break
            }
        }
        #expect(result == .init(bytes: content, hasEnded: true))
        let statistics = try puma.counts(of: lynx)
        #expect(statistics.reconnects >= 3 && statistics.streamsOpened == 1)
        #expect(statistics.streamBytesSent == content.count)
        #expect(try lynx.counts(of: puma).streamBytesReceived == content.count)
    }

    @Test func `move to a better transport with the conversation`() throws {
        let network = SimulatedNetwork.withTwoWires()
        let (puma, lynx) = (network.join(), network.join())
        for member in [puma, lynx] { member.fast.plan.refuse = .all }
        try network.connect(puma, lynx)
        let stream = try puma.openStream("x", to: lynx.id)
        try stream.put(bytes(100_000))
        try network.run(for: .seconds(1))
        #expect(puma.transport(to: lynx) == "slow")
        for member in [puma, lynx] { member.fast.plan = .none }
        try network.run(for: .seconds(60))
        #expect(puma.transport(to: lynx) == "fast")
        try stream.put(bytes(1_000))
        stream.finish()
        try network.run(for: .seconds(1))
        let other = try #require(lynx.streams.first)
        #expect(other.take() == .init(bytes: bytes(100_000) + bytes(1_000), hasEnded: true))
    }

    @Test func `are refused by a session without streams, with which everything else works`() throws {
        let puma = network.join("puma")
        // As a session of version 0.1: no ability, no field in its hello.
        let lynx = network.join("lynx") { $0.limits.streams = 0 }
        try network.connect(puma, lynx)
        #expect(lynx.machine.hello.abilities & 0b11 == 0)
        for (member, other) in [(puma, lynx), (lynx, puma)] {
            for (purpose, words) in [(.program, "streams"), (.files, "files")] as [(StreamPurpose, String)] {
                let error = #expect(throws: NighError.self) {
                    try member.openStream("x", for: purpose, to: other.id)
                }
                #expect(error?.cause == .unsupported(words))
            }
        }
        try puma.session.trySend(Array("hello".utf8), to: lynx.id)
        puma.faults.cut()
        try network.run(for: .seconds(5))
        #expect(lynx.texts == ["hello"] && puma.state(of: lynx.id) == .connected)
    }

    @Test func `do not hold up messages while nobody reads them`() throws {
        let (puma, lynx) = try network.connectedPair()
        let unread = try (0..<10).map { try puma.openStream("\($0)", to: lynx.id) }
        for stream in unread {
            while try stream.put(bytes(100_000)) > 0 { try network.run(for: .milliseconds(10)) }
        }
        try puma.session.trySend(Array("quick".utf8), to: lynx.id)
        try network.run(for: .milliseconds(50))
        #expect(lynx.texts == ["quick"])
        #expect(lynx.streams.count == 10)
    }

    @Test func `deliver what was written when the program leaves, and then end for both`() throws {
        let (puma, lynx) = try network.connectedPair(plan: try FaultPlan(parsing: "delay=50ms"))
        let stream = try puma.openStream("x", to: lynx.id)
        try stream.put(bytes(200_000))
        puma.session.disconnect(lynx.id)
        #expect(throws: NighError.self) { try stream.put([1]) }
        try network.run(for: .seconds(3))
        let other = try #require(lynx.streams.first)
        #expect(other.take() == .init(bytes: bytes(200_000), error: .peerLeft))
        #expect(stream.take() == .init(error: .left))
        #expect(puma.state(of: lynx.id) == .available)
    }

    /// At the beginning of a link the side that dialled it has not measured its round trip, since it asks early.
    @Test func `for forwarded connections get a larger window also over another link of their conversation`()
        throws
    {
        nonisolated(unsafe) var streams: [ByteStream] = []  // the loop is virtual: one thread
        let puma = network.join("puma", plan: try FaultPlan(parsing: "delay=50ms"))
        let lynx = network.join("lynx", layers: [TestLayer(streams: .forward) { streams.append($0) }])
        try network.connect(lynx, puma)
        let stream = try puma.openStream("x", for: .forward, to: lynx.id)
        try network.run(for: .seconds(1))
        let other = try #require(streams.first)
        lynx.faults.cut()
        try network.run(for: .seconds(2))
        #expect(try lynx.counts(of: puma).reconnects == 1)
        let content = ByteSlice(bytes(300_000))
        for _ in 0..<100 {
            _ = try stream.tryWrite(content)
            try network.run(for: .milliseconds(10))
            _ = other.take()
        }
        let table = try #require(lynx.machine.peers[puma.id]?.conversation?.streams)
        #expect(table.windowGrowth > 0)
    }

    @Test func `end with the conversation when the peer does not come back`() throws {
        let (puma, lynx) = try network.connectedPair()
        let stream = try puma.openStream("x", to: lynx.id)
        try network.run(for: .milliseconds(50))
        for member in [puma, lynx] {
            member.faults.block()
            member.faults.cut()
        }
        try stream.put([1, 2])
        try network.run(for: .seconds(20))
        #expect(stream.take() == .init(error: .linkLost))
        #expect(lynx.streams.first?.take() == .init(error: .linkLost))
    }

    @Test func `cannot be opened to a peer that is not connected, or under a name that is too long`() throws {
        let (puma, lynx) = try network.connectedPair()
        #expect(throws: NighError.self) {
            try puma.openStream(String(repeating: "x", count: 256), to: lynx.id)
        }
        #expect(throws: NighError.self) { try puma.openStream("a\n", to: lynx.id) }
        let stranger = network.join("stranger")
        #expect(throws: NighError.self) { try puma.openStream("x", to: stranger.id) }
    }

    @Test func `leave nothing behind, however many were opened and closed`() throws {
        let (puma, lynx) = try network.connectedPair()
        for number in 0..<500 {
            let stream = try puma.openStream("\(number)", to: lynx.id)
            try stream.put([1, 2, 3])
            stream.finish()
            try network.run(for: .milliseconds(1))
            let other = lynx.streams[number]
            #expect(other.take() == .init(bytes: [1, 2, 3], hasEnded: true))
            other.finish()
            try network.run(for: .milliseconds(1))
        }
        #expect(try puma.counts(of: lynx).streamsOpened == 500)
        #expect(puma.session.inconsistencies.isEmpty && lynx.session.inconsistencies.isEmpty)
        #expect(try #require(puma.session.inspection(of: lynx.id)).streams == 0)
        #expect(try #require(lynx.session.inspection(of: puma.id)).streams == 0)
    }
}

@Suite("Streams for files") struct FileStreamTests {
    private let network = SimulatedNetwork()

    /// The streams that a session was given for files.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    private final class Received: @unchecked Sendable {
        var streams: [ByteStream] = []
    }

    /// Two connected sessions, of which the second accepts files.
    private func pair(
        _ onStream: @escaping @Sendable (ByteStream) -> Void = { _ in }
    ) throws -> (puma: SessionProbe, lynx: SessionProbe) {
        let puma = network.join("puma")
        let lynx = network.join("lynx", layers: [TestLayer(streams: .files, onStream: onStream)])
        try network.connect(puma, lynx)
        return (puma, lynx)
    }

    @Test func `reach only their own handler, and those of the program only the program`() throws {
        let received = Received()
        let (puma, lynx) = try pair { stream in
            received.streams.append(stream)
            // A handler may use the stream and the session at once.
            _ = try? stream.tryWrite(ByteSlice([7]))
        }
        let file = try puma.openStream("photo", for: .files, to: lynx.id)
        let own = try puma.openStream("camera", to: lynx.id)
        try file.put([1, 2, 3])
        file.finish()
        puma.faults.cut()
        try network.run(for: .seconds(5))
        #expect(received.streams.map(\.name) == ["photo"] && lynx.streams.map(\.name) == ["camera"])
        let other = try #require(received.streams.first)
        #expect(other.purpose == .files && other.isIncoming && other.peer == puma.id)
        #expect(other.take() == .init(bytes: [1, 2, 3], hasEnded: true))
        #expect(file.take().bytes == [7] && own.take() == .init())
        #expect(try puma.counts(of: lynx).streamsOpened == 2)
    }

    @Test func `are refused by a session that accepts no files, with which other streams work`() throws {
        let (puma, lynx) = try pair()
        let error = #expect(throws: NighError.self) { try lynx.openStream("x", for: .files, to: puma.id) }
        #expect(error?.cause == .unsupported("files") && error?.peer == "puma (\(puma.id.short))")
        let advice = "the peer does not support files; run a program there that accepts files"
        #expect(error?.description.hasSuffix(advice) == true, "\(error?.description ?? "")")
        let own = try lynx.openStream("camera", to: puma.id)
        try network.run(for: .seconds(1))
        #expect(puma.streams.map(\.name) == ["camera"] && lynx.state(of: puma.id) == .connected)
        withExtendedLifetime(own) {}
    }

    // MARK: A peer of which each byte is known

    /// A session that takes streams for files, if told so, and is connected to a peer that does or does not.
    private func connected(
        takesFiles: Bool = true, peerTakesFiles: Bool = true
    ) throws -> (peer: ScriptedPeer, received: Received) {
        let received = Received()
        var hello = ScriptedPeer.hello
        hello.streams = StreamTerms(streams: 4, window: 10_000, for: peerTakesFiles ? [.files] : [])
        let peer = try ScriptedPeer.connected(hello) {
            if takesFiles { $0.layers.append(TestLayer(streams: .files) { received.streams.append($0) }) }
        }
        return (peer, received)
    }

    /// The frame that opens the first stream of the peer, or of the session.
    private func opening(byPeer: Bool, of peer: ScriptedPeer, _ kind: [UInt8]) -> [UInt8] {
        let isOdd = byPeer == (ScriptedPeer.peer > peer.session.id)
        return [0, 0, 0, isOdd ? 1 : 2] + kind + [1, 0x78]
    }

    @Test func `are opened with a frame of their own`() throws {
        let (peer, received) = try connected()
        #expect(peer.machine.hello.abilities & 0b11 == 0b11)
        let stream = try peer.probe.openStream("x", for: .files, to: ScriptedPeer.peer)
        try peer.run(.zero)
        #expect(try peer.takeFrames() == [.init(.streamControl, opening(byPeer: false, of: peer, [6, 1]))])
        try peer.send(.streamControl, opening(byPeer: true, of: peer, [6, 1]))
        #expect(received.streams.map(\.name) == ["x"] && peer.probe.streams.map(\.name) == [])
        withExtendedLifetime(stream) {}
    }

    private static let refused = ["files", "relay", "channel", "calls", "channelStream", "actors", "forward"]
    private static let faults: [(UInt8, String)] =
        zip((1 as UInt8)..., refused).map { ($0, "a stream for \($1), which this side does not accept") }
        + [(255, "a stream for the purpose 255"), (0, "a stream for the purpose 0")]

    @Test(arguments: faults)
    func `end the conversation where they are not accepted, or their purpose is unknown`(
        purpose: UInt8, words: String
    ) throws {
        let (peer, received) = try connected(takesFiles: purpose != StreamPurpose.files.rawValue)
        try peer.send(.streamControl, opening(byPeer: true, of: peer, [6, purpose]))
        #expect(peer.endings == [.protocolViolation(words)])
        #expect(try peer.takeCloseCode() == 1)
        #expect(received.streams.isEmpty && peer.probe.streams.isEmpty)
    }

    @Test func `are never opened to a peer that does not know them, with which other streams work`() throws {
        let (peer, received) = try connected(peerTakesFiles: false)
        #expect(throws: NighError.self) { try peer.probe.openStream("x", for: .files, to: ScriptedPeer.peer) }
        let own = try peer.probe.openStream("x", to: ScriptedPeer.peer)
        try peer.run(.zero)
        #expect(try peer.takeFrames() == [.init(.streamControl, opening(byPeer: false, of: peer, [0]))])
        try peer.send(.streamControl, opening(byPeer: true, of: peer, [0]))
        #expect(
            peer.probe.streams.map(\.name) == ["x"] && received.streams.isEmpty && peer.state == .connected)
        withExtendedLifetime(own) {}
    }

    @Test func `cannot be taken by two layers of one session`() throws {
        var configuration = SessionConfiguration(service: "test", name: DisplayName(fitting: "Puma"))
        func make() throws {
            _ = try Session(
                checking: configuration, identity: .ephemeral(), trust: .ephemeral(), transports: [],
                loop: VirtualEventLoop())
        }
        configuration.layers = [TestLayer(streams: .files) { _ in }, TestLayer(streams: .relay) { _ in }]
        try make()
        configuration.layers.append(TestLayer(streams: .files) { _ in })
        #expect(throws: NighError.self) { try make() }
    }
}
