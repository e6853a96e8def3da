import NighTestKit
import Testing

@testable import NighCore

/// Two ends of a stream, and a channel between them that loses packets by one seed. Time passes when nothing moves.
private struct SequencedPair {
    static let sizes = SequencedStream.Sizes(packet: 300, window: 2_000)
    static let patience = SequencedStream.Patience(answer: .milliseconds(100), nanosecondsPerByte: 1_000)

    var ends: [SequencedStream]
    var random: SeededGenerator
    let lossOneIn: Int
    var now: Moment
    var isReading = [true, true]
    var written: [[UInt8]] = [[], []]
    var read: [[UInt8]] = [[], []]
    var packetCount = 0

    init(seed: UInt64, lossOneIn: Int = .max, resends: Bool, at now: Moment = .at(0)) {
        random = SeededGenerator(seed: seed)
        self.lossOneIn = lossOneIn
        self.now = now
        let end = SequencedStream(
            Self.sizes, theirWindow: Self.sizes.window, patience: resends ? Self.patience : nil, at: now)
        ends = [end, end]
    }

    mutating func write(_ count: Int, at end: Int) {
        let bytes = Frames.random(count, &random)
        written[end] += bytes
        var queue = ByteQueue()
        for part in stride(from: 0, to: count, by: 77) {
            queue.append(ByteSlice(bytes[part..<min(count, part + 77)]))
        }
        ends[end].write(&queue)
    }

    /// Moves packets until none is left, and time until nothing has to be sent again.
    mutating func settle() -> SequencedStream.Failure? {
        for _ in 0..<10_000 {
            var isQuiet = true
            for end in [0, 1] {
                guard let packet = ends[end].nextPacket(at: now) else { continue }
                isQuiet = false
                packetCount += 1
                #expect(packet.count <= Self.sizes.packet)
                guard lossOneIn == .max || Int.random(in: 0..<lossOneIn, using: &random) > 0 else { continue }
                if let failure = ends[1 - end].receive(ByteSlice(packet), at: now) { return failure }
                #expect(ends[1 - end].heldCount <= Self.sizes.window)
                while isReading[1 - end], let bytes = ends[1 - end].read() { read[1 - end] += bytes.bytes }
            }
            guard isQuiet else { continue }
            let waitsForReader = isReading.contains(false)
            guard let due = ends.compactMap(\.resendTime).min(), !waitsForReader else { return nil }
            now = max(now, due)
            for end in [0, 1] { ends[end].resend(at: now) }
        }
        Issue.record("the two ends never came to rest")
        return nil
    }
}

@Suite struct SequencedStreamTests {
    @Test(arguments: [false, true]) func `all bytes arrive in order in both directions, and then the end`(
        resends: Bool
    ) {
        var pair = SequencedPair(seed: 1, resends: resends)
        for count in [1, 250, 30_000, 3] {
            pair.write(count, at: 0)
            pair.write(count / 2 + 1, at: 1)
            #expect(pair.settle() == nil)
        }
        #expect(pair.read[1] == pair.written[0] && pair.read[0] == pair.written[1])
        #expect(!pair.ends[1].isReadToEnd)
        pair.write(5_000, at: 0)
        pair.ends[0].finish()
        #expect(pair.settle() == nil)
        #expect(pair.read[1] == pair.written[0] && pair.ends[1].isReadToEnd && pair.ends[0].isFinished)
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func `a stream that resends loses nothing on a channel that loses packets`(seed: UInt64) {
        var pair = SequencedPair(seed: seed, lossOneIn: Int(seed % 10) + 2, resends: true)
        for count in [400, 20_000, 1] {
            pair.write(count, at: 0)
            pair.write(count * 2, at: 1)
            #expect(pair.settle() == nil)
        }
        for end in [0, 1] { pair.ends[end].finish() }
        #expect(pair.settle() == nil)
        #expect(pair.read[1] == pair.written[0] && pair.read[0] == pair.written[1])
        #expect(pair.ends.allSatisfy { $0.isFinished && $0.isReadToEnd })
    }

    @Test func `without resending, a lost packet ends the stream and changes nothing that was read`() {
        for seed in 0..<50 as Range<UInt64> {
            var pair = SequencedPair(seed: seed, lossOneIn: 20, resends: false)
            pair.write(30_000, at: 0)
            var failure = pair.settle()
            // A grant of room may be the packet that was lost, or the last bytes, which only later ones show.
            for _ in 0..<100 where failure == nil {
                pair.write(1, at: 0)
                failure = pair.settle()
            }
            #expect(failure == .packetsLost || pair.ends[0].waiting > 0)
            #expect(pair.written[0].starts(with: pair.read[1]))
        }
    }

    @Test(arguments: [false, true]) func `a writer stops at the reader's window and continues when it reads`(
        resends: Bool
    ) {
        var pair = SequencedPair(seed: 3, resends: resends)
        pair.isReading = [true, false]
        pair.write(10_000, at: 0)
        #expect(pair.settle() == nil)
        #expect(pair.ends[1].heldCount == SequencedPair.sizes.window)
        pair.isReading = [true, true]
        while let bytes = pair.ends[1].read() { pair.read[1] += bytes.bytes }
        #expect(pair.settle() == nil)
        #expect(pair.read[1] == pair.written[0])
    }

    @Test func `a reader that reads little at a time does not answer every packet`() {
        var pair = SequencedPair(seed: 4, resends: false)
        pair.write(100_000, at: 0)
        #expect(pair.settle() == nil)
        let needed = 100_000 / (SequencedPair.sizes.packet - SequencedStream.headLength)
        #expect(pair.packetCount < needed * 3 / 2)
    }

    @Test func `more bytes than granted, bytes behind the end and cut packets end the stream`() {
        /// Returns the failure of a stream that gets these packets: a kind, a number and the rest.
        func failure(_ packets: (kind: UInt8, number: UInt64, rest: [UInt8])...) -> SequencedStream.Failure? {
            var end = SequencedPair(seed: 1, resends: false).ends[0]
            return packets.lazy.compactMap { packet in
                var writer = FieldWriter(behind: [packet.kind])
                writer.write(packet.number)
                writer.write(raw: packet.rest)
                return end.receive(ByteSlice(writer.bytes), at: .at(0))
            }.first
        }
        #expect(failure((1, 0, [UInt8](repeating: 7, count: 2_001))) == .invalid("more bytes than granted"))
        #expect(failure((3, 0, [])) == nil)
        #expect(failure((3, 0, []), (1, 1, [1])) == .invalid("bytes behind the end"))
        #expect(
            failure((2, 1, [UInt8](repeating: 0xFF, count: 9)))
                == .invalid("acknowledgement of bytes that were not sent"))
        #expect(failure((1, .max, [1])) == .packetsLost)
        #expect(failure((99, 5, [])) == nil)
        var end = SequencedPair(seed: 1, resends: false).ends[0]
        var cut = end
        if case .invalid? = cut.receive(ByteSlice([1, 0, 0]), at: .at(0)) {
        } else {
            Issue.record("it passed")
        }
        #expect(end.receive(ByteSlice(SequencedStream.abort), at: .at(0)) == .aborted)
    }

    @Test func `what was lost is soon sent again, also if the pipe was closed before the channel took it`()
        throws
    {
        final class Channel: PacketChannel {
            private(set) var hasSentAll = false
            func hasPackets(_ pipe: SequencedPipe) {}
            func hasSentAll(_ pipe: SequencedPipe) { hasSentAll = true }
            func isOver(_ pipe: SequencedPipe, abort: [UInt8]?) {}
        }
        let (loop, channel) = (VirtualEventLoop(), Channel())
        var far = SequencedPair(seed: 1, resends: true, at: loop.now).ends[0]
        let pipe = SequencedPipe(
            far, number: 1, from: nil, to: nil, scheme: "test", on: loop, channel: channel)
        var queue = ByteQueue()
        queue.append(ByteSlice([1, 2, 3]))
        pipe.write(&queue)
        pipe.close(.afterWriting)
        // These are lost.
        while pipe.nextPacket() != nil {}
        try loop.run(for: .milliseconds(200))
        while let packet = pipe.nextPacket() {
            #expect(far.receive(ByteSlice(packet), at: loop.now) == nil)
        }
        #expect(far.heldCount == 3)
        while let packet = far.nextPacket(at: loop.now) { pipe.receive(ByteSlice(packet)) }
        #expect(channel.hasSentAll)
    }
}
