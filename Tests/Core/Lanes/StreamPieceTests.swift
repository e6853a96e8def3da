import Testing

@testable import NighCore

/// In which pieces the bytes of a stream travel, and in which memory they wait for the reader.
@Suite("The pieces of streams") struct StreamPieceTests {
    private func bytes(_ count: Int, _ seed: Int = 0) -> [UInt8] { StreamPair.bytes(count, seed) }

    @Test(arguments: [(8_192, 8_192), (16_384, 16_380), (1 << 20, 16_380)])
    func `are as long as both sides accept, but no longer than the chunk that streams share`(
        accepted: Int, longest: Int
    ) throws {
        let pair = StreamPair(window: 100_000, pieceLimit: accepted)
        let stream = try pair.odd.open("x")
        #expect(try stream.put(bytes(100_000)) == 100_000)
        pair.odd.write()
        #expect(pair.odd.frames.map { $0.count - FrameHeader.byteCount }.max() == longest)
        try pair.settle()
        #expect(pair.even.opened[0].take().bytes == bytes(100_000))
    }

    /// A chunk has 16,384 bytes, and a frame of a stream has 8 bytes in front.
    @Test(arguments: [(15_344, [1_024, 976]), (15_345, [2_000])])
    func `go to the next chunk if less than 1 KiB of them fits into the present one`(
        before: Int, pieces: [Int]
    ) throws {
        let pair = StreamPair(window: 100_000)
        let stream = try pair.odd.open("x")
        try stream.put(bytes(before))
        try pair.settle()
        try stream.put(bytes(2_000))
        pair.odd.write()
        #expect(pair.odd.frames.map { $0.count - 8 } == pieces)
    }

    @Test(arguments: [true, false])
    func `are kept as they came if they are full frames, and copied if they would hold far more memory`(
        isFull: Bool
    ) throws {
        let pair = StreamPair(window: 100_000)
        let (outgoing, incoming) = try pair.open()
        // As TLS has it: a chunk of four records.
        let chunk = Chunk(capacity: 64 << 10)
        let length = isFull ? 16_376 : 8_000
        var sent: [UInt8] = []
        for number in 0..<4 {
            let bytes = bytes(length, number)
            sent += bytes
            #expect(try outgoing.put(bytes) == length)
            pair.odd.write()
        }
        for frame in pair.odd.frames {
            let start = chunk.filled
            frame.withUnsafeBytes { chunk.append(.init(rebasing: $0[FrameHeader.byteCount...])) }
            let payload = UnsafeRawBufferPointer(start: chunk.base + start, count: chunk.filled - start)
            try pair.even.table.receivedData(payload, now: pair.even.now) { bytes in
                let offset = bytes.baseAddress.unsafelyUnwrapped - UnsafeRawPointer(chunk.base)
                return ByteSlice(chunk: chunk, start: offset, end: offset + bytes.count)
            }
        }
        var received: [UInt8] = []
        while case .bytes(let slice) = incoming.poll() {
            #expect((slice.chunk === chunk) == isFull)
            received += slice.bytes
        }
        #expect(received == sent)
    }

    @Test(
        "are copied if they are shorter than 4 KiB, or fill less than a fifth of the chunk in which they came",
        arguments: [
            (4_096, 4_096, true), (4_095, 4_095, false), (10_000, 50_000, true), (9_999, 50_000, false),
        ])
    func copied(count: Int, capacity: Int, stays: Bool) throws {
        let pair = StreamPair()
        let stream = try pair.odd.open("x")
        let chunk = Chunk(capacity: capacity)
        bytes(count).withUnsafeBytes { chunk.append($0) }
        let piece = chunk.slice(from: 0)
        _ = piece.withUnsafeBytes { raw in stream.port.deliver(raw) { piece } }
        guard case .bytes(let read) = stream.poll() else {
            Issue.record("nothing has come")
            return
        }
        #expect(read == piece && (read.chunk === chunk) == stays)
    }

    @Test func `are read together if they were copied, as many as fit into a chunk`() throws {
        let pair = StreamPair()
        let stream = try pair.odd.open("x")
        for count in [4_000, 4_000, 4_000, 4_000, 384, 1] {
            let piece = ByteSlice(bytes(count))
            _ = piece.withUnsafeBytes { raw in stream.port.deliver(raw) { piece } }
        }
        var lengths: [Int] = []
        while case .bytes(let slice) = stream.poll() { lengths.append(slice.count) }
        #expect(lengths == [16_384, 1])
    }

    @Test func `that are dropped before they are sent are gone, and others follow`() {
        var queue = StreamFrameQueue(number: 1, frameRoom: 1_000, chunks: PeerPort.makeChunks())
        bytes(2_500).withUnsafeBytes { queue.append($0) }
        queue.removeAll()
        let nothing = queue.takeFirst()
        #expect(nothing == nil && queue.byteCount == 0)
        [UInt8(7)].withUnsafeBytes { queue.append($0) }
        let next = queue.takeFirst()
        #expect(next?.count == 1 && next?.frame.bytes.last == 7)
    }
}
