import Testing

@testable import NighCore

@Suite("The lanes and the streams of a conversation") struct LaneSharesTests {
    /// Frames of one type, one after another.
    private struct Run: Equatable {
        let type: FrameType
        var frames = 1
    }

    private func runs(in bytes: [UInt8]) throws -> [Run] {
        var runs: [Run] = []
        for frame in StreamPair.frames(in: bytes) {
            let type = try #require(FrameType(rawValue: frame[3]))
            if runs.last?.type == type {
                runs[runs.count - 1].frames += 1
            } else {
                runs.append(Run(type: type))
            }
        }
        return runs
    }

    /// So a bulk transfer, or a file in a stream, delays the main lane by one turn only. All frames have 1,000 bytes
    /// here, and the last one of a turn may exceed it.
    @Test func `take turns of 64 KiB, 16 KiB and 16 KiB while each has more to send`() throws {
        var (own, peer) = (Frames.hello(seed: 1), Frames.hello(seed: 2))
        own.streams = StreamTerms(streams: 100, window: 10_000)
        peer.streams = own.streams
        let limits = SessionLimits()
        let port = PeerPort(peer: peer.peer, limits: limits, peerHello: peer)
        let conversation = Conversation(
            id: 1, hello: own, peer: peer, identity: peer.peer, port: port, unread: 0, limits: limits,
            timings: SessionTimings())
        var pool = LaneChunks(smallSize: 4_096, largeSize: 4_096, keepAtMost: 8)
        var header = ControlWriter()
        var wire = ByteQueue()
        var standing = Standing()
        standing.granted = [.max, .max]
        try conversation.startLink(peerStanding: standing, pool: &pool)

        let streams = try (0..<50).map {
            ByteStream(try conversation.openStream(named: "\($0)", for: .program))
        }
        conversation.gather(into: &wire, budget: 1 << 20, header: &header)
        #expect(try runs(in: wire.bytes) == [Run(type: .streamControl, frames: 50)])
        wire.removeAll()

        for stream in streams { try stream.put([UInt8](repeating: 3, count: 992)) }
        conversation.attendToStreams()
        let message = [UInt8](repeating: 1, count: 996)
        for (lane, count) in [(Lane.main, 200), (.bulk, 50)] {
            for _ in 0..<count {
                try port.admit(message.count, on: lane)
                message.withUnsafeBytes { conversation.append($0, on: lane, pool: &pool) }
            }
        }
        conversation.gather(into: &wire, budget: 200_000, header: &header)
        let round = [
            Run(type: .message, frames: 66), Run(type: .bulkMessage, frames: 17),
            Run(type: .streamData, frames: 17),
        ]
        #expect(try runs(in: wire.bytes) == round + round)
        withExtendedLifetime(streams) {}
    }
}
