import Testing

@testable import NighCore

@Suite struct FrameDecoderTests {
    /// A stream of valid frames of all kinds and sizes, and the lengths of its pieces.
    private func stream(
        _ generator: inout SeededGenerator, frames: Int = 40
    ) -> (bytes: [UInt8], pieces: [Int]) {
        let types: [UInt8] = [0x03, 0x05, 0x10, 0x11, 0x14, 0x15, 0x20, 0x80, 0xFF]
        var bytes: [UInt8] = []
        var pieces: [Int] = []
        for _ in 0..<frames {
            let type = types.randomElement(using: &generator) ?? 0
            let isPiece = type == 0x14 || type == 0x15
            let limit = generator.oneIn(6) ? 2_000 : 12
            let count = Int.random(in: (isPiece ? 1 : 0)...limit, using: &generator)
            if isPiece { pieces.append(count) }
            bytes += Frames.frame(type, Frames.random(count, &generator))
        }
        return (bytes, pieces)
    }

    private func decode(_ slices: [ByteSlice], pieces: [Int], limit: Int = 4_096) -> Decoded {
        var decoder = FrameDecoder(maximumPayload: limit)
        var decoded = Decoded()
        var pieces = pieces
        for slice in slices where decoded.error == nil {
            decoder.feed(slice)
            decoded.drain(&decoder, pieceLengths: &pieces)
        }
        return decoded
    }

    /// The fast path for whole messages accepts exactly what the normal path would.
    @Test func `A whole message over the limit is refused`() throws {
        var decoder = FrameDecoder(maximumPayload: 100)
        decoder.feed(ByteSlice(Frames.frame(.message, [UInt8](repeating: 1, count: 100))))
        #expect(decoder.nextWholeMessage()?.bytes.count == 100)
        decoder.feed(ByteSlice(Frames.frame(.message, [UInt8](repeating: 1, count: 101))))
        #expect(decoder.nextWholeMessage() == nil)
        #expect(throws: WireError.oversize(type: FrameType.message.rawValue, length: 101, limit: 100)) {
            _ = try decoder.next()
        }
    }

    @Test func `Any split gives the same frames`() {
        var generator = SeededGenerator(seed: 2)
        for round in 0..<400 {
            let (bytes, pieces) = stream(&generator)
            let slices = Frames.cut(bytes, atMost: [1, 3, 7, 64, 5_000][round % 5], &generator)
            let decoded = decode(slices, pieces: pieces)
            let reference = Decoded(reference: bytes, maximumPayload: 4_096)
            #expect(decoded.frames == reference.frames && decoded.error == nil, "round \(round)")
        }
    }

    @Test func `Slices fed together come out in order`() {
        var generator = SeededGenerator(seed: 3)
        let bytes: [UInt8]
        var pieces: [Int]
        (bytes, pieces) = stream(&generator)
        var decoder = FrameDecoder(maximumPayload: 4_096)
        for slice in Frames.cut(bytes, atMost: 9, &generator) { decoder.feed(slice) }
        #expect(decoder.unparsedByteCount == bytes.count)
        var decoded = Decoded()
        decoded.drain(&decoder, pieceLengths: &pieces)
        #expect(decoded.frames == Decoded(reference: bytes, maximumPayload: 4_096).frames)
        #expect(decoder.unparsedByteCount == 0)
    }

    @Test func `Corrupted frames fail like the reference`() {
        var generator = SeededGenerator(seed: 4)
        for round in 0..<2_000 {
            var (bytes, _) = stream(&generator, frames: 6)
            for _ in 0..<3 {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] ^=
                    1 << UInt8.random(in: 0...7, using: &generator)
            }
            let reference = Decoded(reference: bytes, maximumPayload: 1_000)
            let pieces = reference.frames.filter { [0x14, 0x15].contains($0.type) }.map(\.bytes.count)
            let decoded = decode(
                Frames.cut(bytes, atMost: 300, &generator), pieces: pieces, limit: 1_000)
            #expect(decoded.frames == reference.frames && decoded.error == reference.error, "round \(round)")
        }
    }

    @Test func `A piece is delivered as it arrives`() throws {
        var decoder = FrameDecoder(maximumPayload: 1_000)
        decoder.feed(ByteSlice(Frames.header(0x14, 600) + [1, 2]))
        #expect(try decoder.next().map { Array($0.bytes) } == [1, 2])
        #expect(try decoder.next() == nil)
        #expect(decoder.unparsedByteCount == 0)
        decoder.feed(ByteSlice([3]))
        #expect(try decoder.next().map { $0.wireBytes } == 1)
        decoder.feed(ByteSlice([UInt8](repeating: 9, count: 597) + Frames.frame(0x03, [7])))
        #expect(try decoder.next().map { $0.bytes.count } == 597)
        #expect(try decoder.next().map { Array($0.bytes) } == [7])
    }

    @Test func `A whole frame is not copied`() throws {
        var decoder = FrameDecoder(maximumPayload: 1_000)
        let slice = ByteSlice(Frames.frame(0x10, [1, 2, 3]))
        decoder.feed(slice)
        let frame = try #require(try decoder.next())
        #expect(frame.bytes.baseAddress == slice.pointer.baseAddress.map { $0 + 4 })
        #expect(frame.wireBytes == 7)
    }

    @Test func `A frame or slice without bytes is nothing to keep`() throws {
        var decoder = FrameDecoder(maximumPayload: 10)
        decoder.feed(ByteSlice([]))
        #expect(try decoder.next() == nil)
        decoder.feed(ByteSlice(Frames.frame(0x10)))
        let frame = try #require(try decoder.next())
        #expect(frame.bytes.isEmpty && decoder.retain(frame.bytes).isEmpty)
    }

    @Test(
        arguments: [
            (0x10, 1_001), (0x14, 65_536), (0x05, 1_001), (0x90, (1 << 24) - 1), (0x14, 0), (0x15, 0),
        ] as [(type: UInt8, length: Int)], [1, 4, 8])
    func `A frame over the limit, or a piece without bytes, is refused at its header`(
        _ frame: (type: UInt8, length: Int), step: Int
    ) {
        let bytes = Frames.header(frame.type, frame.length) + [0, 0, 0, 0]
        var decoder = FrameDecoder(maximumPayload: 1_000)
        var error: WireError?
        var fed = 0
        while error == nil, fed < bytes.count {
            decoder.feed(ByteSlice(bytes[fed..<min(fed + step, bytes.count)]))
            fed += step
            do throws(WireError) { while try decoder.next() != nil {} } catch let refused { error = refused }
        }
        let oversize = WireError.oversize(type: frame.type, length: frame.length, limit: 1_000)
        #expect(error == (frame.length > 0 ? oversize : .malformed("a piece without bytes")))
        #expect(fed <= max(4, step), "it was refused only after more than its header had come")
        #expect(decoder.unparsedByteCount <= 8)
    }

    @Test func `The limit counts from the next frame on`() throws {
        let bytes = Frames.frame(0x01, [1]) + Frames.frame(0x10, [UInt8](repeating: 5, count: 50))
        for (before, after) in [(10, 50), (50, 49)] {
            var decoder = FrameDecoder(maximumPayload: before)
            decoder.feed(ByteSlice(bytes))
            #expect(try decoder.next()?.type == 0x01)
            decoder.maximumPayload = after
            if after >= 50 {
                #expect(try decoder.next()?.bytes.count == 50)
            } else {
                #expect(throws: WireError.oversize(type: 0x10, length: 50, limit: after)) {
                    try decoder.next()
                }
            }
        }
    }

    @Test func `Retained bytes stay unchanged`() throws {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<100 {
            let (bytes, _) = stream(&generator, frames: 60)
            var decoder = FrameDecoder(maximumPayload: 4_096)
            var kept: [(ByteSlice, [UInt8])] = []
            for slice in Frames.cut(bytes, atMost: 40, &generator) {
                decoder.feed(slice)
                while let frame = try decoder.next() {
                    if generator.oneIn(2) { kept.append((decoder.retain(frame.bytes), Array(frame.bytes))) }
                }
            }
            for (slice, bytes) in kept { #expect(slice.bytes == bytes) }
        }
    }

    @Test func `Split frames reuse one chunk`() throws {
        var decoder = FrameDecoder(maximumPayload: 4_096)
        var addresses: Set<UnsafeRawPointer> = []
        for _ in 0..<10 {
            let bytes = Frames.frame(0x10, [UInt8](repeating: 1, count: 100))
            decoder.feed(ByteSlice(bytes[0..<50]))
            #expect(try decoder.next() == nil)
            decoder.feed(ByteSlice(bytes[50...]))
            let frame = try #require(try decoder.next())
            addresses.insert(try #require(frame.bytes.baseAddress))
        }
        #expect(addresses.count == 1, "a chunk was made for each split frame")
    }

    @Test func `Memory grows with received bytes not with the announced length`() throws {
        var decoder = FrameDecoder(maximumPayload: 16_384)
        decoder.feed(ByteSlice(Frames.header(0x10, 16_384)))
        for _ in 0..<100 {
            decoder.feed(ByteSlice([1]))
            #expect(try decoder.next() == nil)
        }
        #expect(decoder.unparsedByteCount == 104)
    }
}
