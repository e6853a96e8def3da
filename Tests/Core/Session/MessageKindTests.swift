import NighTestKit
import Testing
import Worlds

@testable import NighCore

@Suite("Messages of kinds") struct MessageKindTests {
    private let network = SimulatedNetwork()

    /// The messages of kinds that a session was given.
    ///
    /// `@unchecked Sendable`: everything happens on the one virtual loop.
    private final class Received: @unchecked Sendable {
        var messages: [(kind: UInt8, bytes: [UInt8], lane: Lane)] = []
        /// The texts of all messages, of kinds or not, in the order in which they came.
        var all: [String] = []
    }

    private let one = MessageKind(rawValue: 1)!
    private let last = MessageKind(rawValue: 255)!

    /// Two connected sessions, of which the second takes messages of kinds.
    private func pair(
        reading: SessionProbe.Reading = .handler
    ) throws -> (puma: SessionProbe, lynx: SessionProbe, received: Received) {
        let received = Received()
        let layer = TestLayer(kinds: [one, last]) { bytes, kind, origin in
            let bytes = bytes.withUnsafeBytes { Array($0) }
            received.messages.append((kind.rawValue, bytes, origin.lane))
            received.all.append(String(decoding: bytes, as: UTF8.self))
        }
        let puma = network.join("puma")
        let lynx = network.join("lynx", reading: reading, layers: [layer])
        lynx.messageReaction = { bytes, _, _ in received.all.append(String(decoding: bytes, as: UTF8.self)) }
        try network.connect(puma, lynx)
        return (puma, lynx, received)
    }

    @Test func `reach only their layer, in order with the program's own, also on the next link`() throws {
        let (puma, lynx, received) = try pair()
        puma.faults.stall()
        for number in 0..<20 {
            let kind = [nil, one, nil, last][number % 4]
            try puma.session.trySend(ByteSlice("\(number)".utf8), of: kind, to: lynx.id)
        }
        try network.run(for: .seconds(1))
        #expect(received.all.isEmpty)
        puma.faults.cut()
        puma.faults.release()
        try network.run(for: .seconds(5))
        #expect(received.all == (0..<20).map(String.init))
        #expect(lynx.texts == (0..<20).filter { $0 % 2 == 0 }.map(String.init))
        #expect(received.messages.map(\.kind) == (0..<5).flatMap { _ in [1, 255] as [UInt8] })
    }

    @Test(arguments: [0, 1, 8_191, 8_192, 65_534, 65_535, 65_536, 300_000])
    func `arrive whole at every size, from the loop and from other threads`(_ count: Int) throws {
        let (puma, lynx, received) = try pair(reading: .inbox)
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let payload = ByteSlice(bytes)
        try puma.session.trySend(payload, of: last, to: lynx.id, on: .bulk)
        try OtherThread.run { Result { try puma.session.trySend(payload, of: last, to: lynx.id, on: .bulk) } }
            .get()
        try network.run(for: .seconds(1))
        #expect(received.messages.count == 2)
        for message in received.messages {
            #expect(message.kind == 255 && message.bytes == bytes && message.lane == .bulk)
        }
        #expect(lynx.session.messages.poll() == nil)
        let (sent, come) = (try puma.counts(of: lynx), try lynx.counts(of: puma))
        #expect(sent.bytesSent == 2 * (count + 1) && come.bytesReceived == 2 * (count + 1))
        #expect(sent.bytesWaiting == 0 && come.bytesUnread == 0)
    }

    @Test func `are refused by a session that takes none, which gets the program's messages`() throws {
        let (puma, lynx, _) = try pair()
        for size in [1, 100_000] {
            let payload = ByteSlice([UInt8](repeating: 1, count: size))
            let send = { Result { try lynx.session.trySend(payload, of: one, to: puma.id) } }
            for result in [send(), OtherThread.run(send)] {
                let error = #expect(throws: NighError.self) { try result.get() }
                #expect(error?.cause == .unsupported("messages of kinds"))
            }
        }
        try lynx.session.trySend(ByteSlice("hi".utf8), to: puma.id)
        try network.run(for: .seconds(1))
        #expect(puma.texts == ["hi"])
    }

    @Test func `count against the send buffer until they are acknowledged`() throws {
        let (puma, lynx, received) = try pair()
        let payload = ByteSlice([UInt8](repeating: 1, count: 100_000))
        puma.faults.stall()
        var count = 0
        while count < 1_000, (try? puma.session.trySend(payload, of: one, to: lynx.id)) != nil { count += 1 }
        let error = #expect(throws: NighError.self) {
            try puma.session.trySend(payload, of: one, to: lynx.id)
        }
        guard case .bufferFull? = error?.cause else { throw error ?? NighError(.sending, .closed) }
        puma.faults.release()
        try network.run(for: .seconds(1))
        #expect(try received.messages.count == count && puma.counts(of: lynx).bytesWaiting == 0)
        try puma.session.trySend(payload, of: one, to: lynx.id)
    }

    @Test func `are written as the page of the protocol shows`() throws {
        var hello = ScriptedPeer.hello
        hello.acceptsKinds = true
        let peer = try ScriptedPeer.connected(hello)
        try peer.session.trySend(ByteSlice("hi".utf8), of: one, to: ScriptedPeer.peer)
        let large = ByteSlice([UInt8](repeating: 7, count: 262_144))
        try peer.session.trySend(large, of: last, to: ScriptedPeer.peer, on: .bulk)
        try peer.run(.zero)
        let frames = try peer.takeFrames()
        #expect(frames.dropFirst(2).allSatisfy { $0.type == FrameType.bulkPiece.rawValue })
        let steps = try ProtocolPage().example(in: "4.1 Whole messages")
        #expect(steps.count == 2)
        for (frame, step) in zip(frames, steps) {
            let header = [0, 0, UInt8(frame.payload.count), frame.type]
            #expect(header + frame.payload == step.bytes.exact)
        }
    }

    @Test(
        arguments: [
            (false, Frames.frame(.kindMessage, [1, 7])), (false, Frames.frame(.bulkKindMessage, [1])),
            (false, Frames.frame(.begin, [0, 0, 0, 9, 1])), (true, Frames.frame(.kindMessage, [0, 7])),
            (true, Frames.frame(.bulkKindMessage)), (true, Frames.frame(.begin, [0, 0, 0, 9, 0])),
            (true, Frames.frame(.bulkBegin, [0, 0, 0, 9, 1, 1])),
        ])
    func `break the protocol where the receiver takes none, with kind 0, and without one`(
        _ takesKinds: Bool, _ frame: [UInt8]
    ) throws {
        let peer = try ScriptedPeer.connected {
            if takesKinds { $0.layers.append(TestLayer(kinds: [one]) { _, _, _ in }) }
        }
        try peer.send(frame)
        guard case .protocolViolation(let words)? = peer.endings.last else {
            Issue.record("the conversation goes on: \(peer.moves)")
            return
        }
        #expect(words.contains("kind") || words.contains("beginning"))
    }
}
