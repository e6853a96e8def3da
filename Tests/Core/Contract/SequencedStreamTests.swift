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
    var now = Moment(nanoseconds: 0)
    var isReading = [true, true]
    var written: [[UInt8]] = [[], []]
    var read: [[UInt8]] = [[], []]
    var packetCount = 0

    init(seed: UInt64, lossOneIn: Int = .max, resends: Bool) {
        random = SeededGenerator(seed: seed)
        self.lossOneIn = lossOneIn
        let end = SequencedStream(
            Self.sizes, theirWindow: Self.sizes.window, patience: resends ? Self.patience : nil, at: now)
        ends = [end, end]
    }

    mutating func write(_ count: Int, at end: Int) {
        let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
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
    @Test("all bytes arrive in order in both directions, and then the end", arguments: [false, true])
    func carries(resends: Bool) {
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

    @Test(
        "a stream that resends loses nothing on a channel that loses packets",
        arguments: 0..<50 as Range<UInt64>)
    func resends(seed: UInt64) {
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

    @Test("without resending, a lost packet ends the stream and changes nothing that was read")
    func failsOnLoss() {
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

    @Test("a writer stops at the reader's window and continues when it reads", arguments: [false, true])
    func slowReader(resends: Bool) {
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

    @Test("a reader that reads little at a time does not answer every packet")
    func grantsRarely() {
        var pair = SequencedPair(seed: 4, resends: false)
        pair.write(100_000, at: 0)
        #expect(pair.settle() == nil)
        let needed = 100_000 / (SequencedPair.sizes.packet - SequencedStream.headLength)
        #expect(pair.packetCount < needed * 3 / 2)
    }

    @Test("more bytes than granted, bytes behind the end and cut packets end the stream")
    func hostile() {
        func end() -> SequencedStream {
            SequencedStream(SequencedPair.sizes, theirWindow: 100, at: Moment(nanoseconds: 0))
        }
        func bytes(_ kind: UInt8, at number: UInt64, _ rest: [UInt8] = []) -> ByteSlice {
            var packet = FieldWriter(behind: [kind])
            packet.write(number)
            packet.write(raw: rest)
            return ByteSlice(packet.bytes)
        }
        let now = Moment(nanoseconds: 0)
        var flooded = end()
        let flood = flooded.receive(bytes(1, at: 0, [UInt8](repeating: 7, count: 2_001)), at: now)
        #expect(flood == .invalid("more bytes than granted"))
        var ended = end()
        #expect(ended.receive(bytes(3, at: 0), at: now) == nil)
        #expect(ended.receive(bytes(1, at: 1, [1]), at: now) == .invalid("bytes behind the end"))
        var cut = end()
        guard case .invalid? = cut.receive(ByteSlice([1, 0, 0]), at: now) else {
            Issue.record("a packet that was cut short passed")
            return
        }
        var cheated = end()
        let cheat = cheated.receive(bytes(2, at: 1, [UInt8](repeating: 0xFF, count: 9)), at: now)
        #expect(cheat == .invalid("acknowledgement of bytes that were not sent"))
        var early = end()
        #expect(early.receive(bytes(1, at: .max, [1]), at: now) == .packetsLost)
        var aborted = end()
        #expect(aborted.receive(ByteSlice(SequencedStream.abort), at: now) == .aborted)
        var later = end()
        #expect(later.receive(bytes(99, at: 5), at: now) == nil)
    }

    @Test("packets of any content never stop the program", arguments: [false, true])
    func anything(resends: Bool) {
        var random = SeededGenerator(seed: 9)
        for _ in 0..<2_000 {
            var pair = SequencedPair(seed: 1, resends: resends)
            pair.write(500, at: 0)
            for _ in 0..<20 {
                var packet = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
                if !packet.isEmpty { packet[0] = UInt8.random(in: 0...5, using: &random) }
                for index in packet.indices.dropFirst().prefix(7) where Bool.random(using: &random) {
                    packet[index] = 0
                }
                guard pair.ends[0].receive(ByteSlice(packet), at: pair.now) == nil else { break }
                _ = pair.ends[0].read()
                _ = pair.ends[0].nextPacket(at: pair.now)
                pair.now = pair.now + .milliseconds(500)
                pair.ends[0].resend(at: pair.now)
            }
        }
    }
}
