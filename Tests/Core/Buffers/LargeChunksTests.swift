import Testing

@testable import NighCore

@Suite struct LargeChunksTests {
    private let chunks = LargeChunks()

    /// Recycles a chunk of `size` bytes that nobody reads any more; returns its identity.
    @discardableResult
    private func recycleOne(_ size: Int) -> ObjectIdentifier {
        let chunk = Chunk(capacity: size)
        chunks.recycle(chunk)
        return ObjectIdentifier(chunk)
    }

    @Test func aRecycledChunkIsEmpty() {
        let chunk = Chunk(capacity: 1_000)
        _ = chunk.claim(700)
        chunks.recycle(chunk)
        #expect(chunks.takeIfKept(1_000) == nil, "it is still held here")
        let kept = recycleOne(1_000)
        let taken = chunks.takeIfKept(900)
        #expect(taken.map { ObjectIdentifier($0) } == kept)
        #expect(taken?.filled == 0)
        #expect(chunk.filled == 700)
    }

    @Test func aChunkThatIsReadWaitsForItsLastReader() {
        var slice: ByteSlice? = ByteSlice([UInt8](repeating: 3, count: 50_000))
        if let slice { chunks.recycle(slice.chunk) }
        #expect(chunks.takeIfKept(50_000) == nil)
        #expect(slice?.bytes == [UInt8](repeating: 3, count: 50_000))
        slice = nil
        #expect(chunks.takeIfKept(50_000) != nil)
    }

    @Test func atMostHalfIsWasted() {
        recycleOne(100_000)
        #expect(chunks.takeIfKept(100_001) == nil)
        #expect(chunks.takeIfKept(49_999) == nil)
        #expect(chunks.takeIfKept(50_000) != nil)
        #expect(chunks.take(30_000).capacity == 30_000)
    }

    @Test func keptChunksStayWithinTheLimits() {
        for size in [10_000, 30_000, 40_000, 50_000, 60_000] { recycleOne(size) }
        #expect(chunks.extent == (LargeChunks.countLimit, 180_000))
        #expect(chunks.takeIfKept(10_000) == nil, "the oldest went")
        recycleOne(LargeChunks.byteLimit - 100_000)
        #expect(chunks.extent.byteCount <= LargeChunks.byteLimit)
        #expect(chunks.takeIfKept(LargeChunks.byteLimit - 100_000) != nil)
        let before = chunks.extent
        recycleOne(LargeChunks.byteLimit + 1)
        #expect(chunks.extent == before)
        recycleOne(LargeChunks.byteLimit)
        #expect(chunks.extent == (1, LargeChunks.byteLimit))
    }

    @Test func aChunkRecycledTwiceIsKeptOnce() {
        let chunk = Chunk(capacity: 100)
        chunks.recycle(chunk)
        chunks.recycle(chunk)
        #expect(chunks.extent == (1, 100))
    }

    @Test func chunksThatStayInUseAreReplaced() {
        let stored = (0..<LargeChunks.countLimit).map { _ in Chunk(capacity: 20_000) }
        for chunk in stored { chunks.recycle(chunk) }
        recycleOne(20_000)
        #expect(chunks.takeIfKept(20_000) == nil, "those read now may be free before the new one")
        for _ in 1..<LargeChunks.countLimit { recycleOne(20_000) }
        #expect(chunks.takeIfKept(20_000) != nil)
        withExtendedLifetime(stored) {}
    }

    @Test func unusedChunksAreReleased() {
        #expect(chunks.isEmpty)
        recycleOne(20_000)
        #expect(chunks.takeIfKept(20_000) != nil)
        recycleOne(20_000)
        #expect(!chunks.isEmpty)
        #expect(chunks.releaseUnused(), "it was used since")
        #expect(chunks.extent.count == 1)
        #expect(!chunks.releaseUnused())
        #expect(chunks.extent == (0, 0))
        #expect(chunks.isEmpty)
    }

    @Test func aReceivedMessageIsPassedOnWithoutACopyAndAPartOfItWithOne() {
        let chunk = Chunk(capacity: 40_000)
        for index in 0..<40_000 { chunk.claim(1).storeBytes(of: UInt8(index & 0xFF), as: UInt8.self) }
        let message = chunk.slice(from: 0)
        chunks.recycle(chunk)
        let (whole, half, part) = message.withUnsafeBytes { bytes in
            (
                chunks.slice(of: bytes), chunks.slice(of: .init(rebasing: bytes[20_000...])),
                chunks.slice(of: .init(rebasing: bytes[20_001...]))
            )
        }
        #expect(whole.chunk === chunk)
        #expect(half.chunk === chunk)
        #expect(part.chunk !== chunk)
        #expect(whole == message)
        #expect(half == message[20_000..<40_000])
        #expect(part == message[20_001..<40_000])
    }

    @Test func foreignBytesAreCopied() {
        recycleOne(30_000)
        let bytes = [UInt8](repeating: 9, count: 25_000)
        let slice = bytes.withUnsafeBytes { chunks.slice(of: $0) }
        #expect(slice.bytes == bytes)
        #expect(slice.chunk.capacity == 30_000)
    }
}
