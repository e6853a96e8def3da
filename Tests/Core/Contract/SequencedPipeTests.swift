import NighTestKit
import Testing

@testable import NighCore

/// A pipe over a channel of packets that takes them when the test does.
@Suite struct SequencedPipeTests {
    private final class Channel: PacketChannel {
        private(set) var hasSentAll = false

        func hasPackets(_ pipe: SequencedPipe) {}
        func hasSentAll(_ pipe: SequencedPipe) { hasSentAll = true }
        func isOver(_ pipe: SequencedPipe, abort: [UInt8]?) {}
    }

    @Test("What was lost is soon sent again, also if the pipe was closed before the channel took it")
    func lostAfterClose() throws {
        let (loop, channel) = (VirtualEventLoop(), Channel())
        let patience = SequencedStream.Patience(answer: .milliseconds(100), nanosecondsPerByte: 0)
        let sizes = SequencedStream.Sizes(packet: 100, window: 1_000)
        let pipe = SequencedPipe(
            SequencedStream(sizes, theirWindow: 1_000, patience: patience, at: loop.now), number: 1,
            from: nil,
            to: nil, scheme: "test", on: loop, channel: channel)
        var far = SequencedStream(sizes, theirWindow: 1_000, patience: patience, at: loop.now)
        var queue = ByteQueue()
        queue.append(ByteSlice([1, 2, 3]))
        pipe.write(&queue)
        pipe.close(.afterWriting)
        // These are lost.
        while pipe.nextPacket() != nil {}
        try loop.run(for: .milliseconds(200))
        while let packet = pipe.nextPacket() {
            let failure = far.receive(ByteSlice(packet), at: loop.now)
            #expect(failure == nil)
        }
        #expect(far.heldCount == 3)
        while let packet = far.nextPacket(at: loop.now) { pipe.receive(ByteSlice(packet)) }
        #expect(channel.hasSentAll)
    }
}
