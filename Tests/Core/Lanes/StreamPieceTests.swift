import Testing

@testable import NighCore

/// In which pieces the bytes of a stream travel, and in which memory they wait for the reader.
@Suite("The pieces of streams") struct StreamPieceTests {
    private func bytes(_ count: Int, _ seed: Int = 0) -> [UInt8] { StreamPair.bytes(count, seed) }

    @Test(
        "are as long as both sides accept, but no longer than the chunk that streams share",
        arguments: [(8_192, 8_192), (16_384, 16_380), (1 << 20, 16_380)])
    func longest(accepted: Int, longest: Int) throws {
        let pair = StreamPair(StreamTerms(streams: 4, window: 100_000), pieceLimit: accepted)
        let stream = try pair.odd.open("x")
        #expect(try stream.put(bytes(100_000)) == 100_000)
        pair.odd.write()
        let payloads = StreamPair.frames(in: pair.odd.wire.bytes).map { $0.count - FrameHeader.byteCount }
        #expect(payloads.max() == longest)
        try pair.settle()
        #expect(pair.even.opened[0].take().bytes == bytes(100_000))
        withExtendedLifetime(stream) {}
    }

    /// A chunk has 16,384 bytes, and a frame of a stream has 8 bytes in front.
    @Test(
        "go to the next chunk if less than 1 KiB of them fits into the present one",
        arguments: [(15_344, [1_024, 976]), (15_345, [2_000])])
    func ends(before: Int, pieces: [Int]) throws {
        let pair = StreamPair(StreamTerms(streams: 4, window: 100_000))
        let stream = try pair.odd.open("x")
        try stream.put(bytes(before))
        try pair.settle()
        try stream.put(bytes(2_000))
        pair.odd.write()
        #expect(StreamPair.frames(in: pair.odd.wire.bytes).map { $0.count - 8 } == pieces)
        withExtendedLifetime(stream) {}
    }

    @Test(
        "are kept as they came if they are full frames, and copied if they would hold far more memory",
        arguments: [true, false])
    func slices(isFull: Bool) throws {
        let pair = StreamPair(StreamTerms(streams: 4, window: 100_000))
        let outgoing = try pair.odd.open("slices")
        // As TLS has it: a chunk of four records.
        let chunk = Chunk(capacity: 64 << 10)
        let length = isFull ? 16_376 : 8_000
        var sent: [UInt8] = []
        for number in 0..<4 {
            let bytes = bytes(length, number)
            sent += bytes
            let count = try bytes.withUnsafeBytes { try outgoing.tryWrite($0) }
            #expect(count == length)
            pair.odd.write()
        }
        let frames = StreamPair.frames(in: pair.odd.wire.bytes)
        try pair.even.receive(try #require(frames.first))
        let incoming = try #require(pair.even.opened.first)
        for frame in frames.dropFirst() {
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

    /// Returns whether a piece of `count` bytes that came in a chunk of `capacity` bytes stays there until it is read.
    private func staysInChunk(count: Int, capacity: Int) throws -> Bool {
        let pair = StreamPair()
        let stream = try pair.odd.open("x")
        let chunk = Chunk(capacity: capacity)
        bytes(count).withUnsafeBytes { chunk.append($0) }
        let piece = chunk.slice(from: 0)
        _ = piece.withUnsafeBytes { raw in stream.port.deliver(raw) { piece } }
        guard case .bytes(let read) = stream.poll() else {
            Issue.record("nothing has come")
            return false
        }
        #expect(read == piece)
        return read.chunk === chunk
    }

    @Test("are copied if they are shorter than 4 KiB")
    func least() throws {
        #expect(try staysInChunk(count: 4_096, capacity: 4_096))
        #expect(try !staysInChunk(count: 4_095, capacity: 4_095))
    }

    @Test("are copied if they fill less than a fifth of the chunk in which they came")
    func fifth() throws {
        #expect(try staysInChunk(count: 10_000, capacity: 50_000))
        #expect(try !staysInChunk(count: 9_999, capacity: 50_000))
    }

    @Test("are read together if they were copied, as many as fit into a chunk")
    func together() throws {
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
}
