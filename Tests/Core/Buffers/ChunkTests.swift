import Testing

@testable import NighCore

@Suite struct ChunkTests {
    /// The memory behind a chunk belongs to something else, so an attempt to write there must stop the program.
    @Test func `Claiming more than the capacity stops the program`() async {
        await #expect(processExitsWith: .failure) { _ = Chunk(capacity: 8).claim(9) }
        await #expect(processExitsWith: .failure) { _ = Chunk(capacity: 8).claim(-1) }
    }

    @Test func `A chunk fills from its front`() {
        let chunk = Chunk(capacity: 8)
        #expect(chunk.room == 8 && chunk.filled == 0)
        [1, 2, 3].withUnsafeBytes { chunk.append(UnsafeRawBufferPointer(rebasing: $0[..<1])) }
        let start = chunk.filled
        chunk.claim(2).storeBytes(of: UInt16(0x0706).bigEndian, as: UInt16.self)
        #expect(chunk.filled == 3 && chunk.room == 5)
        #expect(chunk.slice(from: start).bytes == [7, 6])
        #expect(chunk.slice(from: 0).bytes == [1, 7, 6])
        #expect(chunk.slice(from: chunk.filled).isEmpty)
    }

    @Test func `A chunk without readers is reused`() {
        var pool = ChunkPool(chunkSize: 16, keepAtMost: 1)
        let chunk = pool.take()
        chunk.append([1, 2, 3])
        let place = ObjectIdentifier(chunk)
        pool.recycle(consume chunk)
        let again = pool.take()
        #expect(ObjectIdentifier(again) == place && again.filled == 0)
    }

    @Test func `A chunk with a reader is not reused`() {
        var pool = ChunkPool(chunkSize: 16, keepAtMost: 4)
        let chunk = pool.take()
        chunk.append([UInt8(5)])
        let slice = chunk.slice(from: 0)
        pool.recycle(consume chunk)
        let next = pool.take()
        next.append([UInt8(6)])
        #expect(slice.bytes == [5], "what was received must not change under its reader")
        #expect(next !== slice.chunk)
    }

    @Test func `A pool keeps no more than its limit and no other sizes`() {
        var pool = ChunkPool(chunkSize: 16, keepAtMost: 2)
        weak var stranger: Chunk?
        do {
            let chunk = Chunk(capacity: 32)
            stranger = chunk
            pool.recycle(consume chunk)
        }
        #expect(stranger == nil)
        var chunks = (0..<5).map { _ in pool.take() }
        let places = Set(chunks.map(ObjectIdentifier.init))
        #expect(places.count == 5, "a chunk is handed out once")
        weak let last: Chunk? = chunks.last
        while let chunk = chunks.popLast() { pool.recycle(chunk) }
        #expect(last != nil, "the first two given back are kept")
        let kept = [pool.take(), pool.take()]
        #expect(Set(kept.map(ObjectIdentifier.init)).isSubset(of: places))
        #expect(pool.take().capacity == 16)
    }

    @Test
    func `A large block that is read into begins with a page; one that is written lies behind the headers`() {
        func offset(_ chunk: Chunk) -> Int { Int(bitPattern: chunk.base) % 4_096 }
        for size in [64 << 10, (64 << 10) + 1, 1 << 20] {
            var pool = ChunkPool(chunkSize: size, keepAtMost: 1, .forReading)
            let chunks = [Chunk(capacity: size, .forReading), pool.take(), Chunk(capacity: size)]
            #expect(chunks.map(offset) == [0, 0, 1_024])
        }
    }

    @Test(arguments: [0, 1, (64 << 10) - 1, 64 << 10, 300_000], [Chunk.Placement.forReading, .forMessages])
    func `A block has all its bytes, wherever it lies`(_ size: Int, _ placement: Chunk.Placement) {
        let chunk = Chunk(capacity: size, placement)
        let content = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        content.withUnsafeBytes { chunk.append($0) }
        #expect(chunk.room == 0)
        #expect(chunk.slice(from: 0).bytes == content)
    }

}

@Suite struct LargeChunksTests {
    private let chunks = LargeChunks()

    /// Recycles a chunk of `size` bytes that nobody reads any more; returns its identity.
    @discardableResult
    private func recycleOne(_ size: Int) -> ObjectIdentifier {
        let chunk = Chunk(capacity: size)
        chunks.recycle(chunk)
        return ObjectIdentifier(chunk)
    }

    @Test func `A recycled chunk is empty`() {
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

    @Test func `A chunk that is read waits for its last reader`() {
        var slice: ByteSlice? = ByteSlice([UInt8](repeating: 3, count: 50_000))
        if let slice { chunks.recycle(slice.chunk) }
        #expect(chunks.takeIfKept(50_000) == nil)
        #expect(slice?.bytes == [UInt8](repeating: 3, count: 50_000))
        slice = nil
        #expect(chunks.takeIfKept(50_000) != nil)
    }

    @Test func `At most half is wasted`() {
        recycleOne(100_000)
        #expect(chunks.takeIfKept(100_001) == nil)
        #expect(chunks.takeIfKept(49_999) == nil)
        #expect(chunks.takeIfKept(50_000) != nil)
        #expect(chunks.take(30_000).capacity == 30_000)
    }

    @Test func `Kept chunks stay within the limits`() {
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

    @Test func `A chunk recycled twice is kept once`() {
        let chunk = Chunk(capacity: 100)
        chunks.recycle(chunk)
        chunks.recycle(chunk)
        #expect(chunks.extent == (1, 100))
    }

    @Test func `Chunks that stay in use are replaced`() {
        let stored = (0..<LargeChunks.countLimit).map { _ in Chunk(capacity: 20_000) }
        for chunk in stored { chunks.recycle(chunk) }
        recycleOne(20_000)
        #expect(chunks.takeIfKept(20_000) == nil, "those read now may be free before the new one")
        for _ in 1..<LargeChunks.countLimit { recycleOne(20_000) }
        #expect(chunks.takeIfKept(20_000) != nil)
        withExtendedLifetime(stored) {}
    }

    @Test func `Unused chunks are released`() {
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

    @Test func `A received message is passed on without a copy and a part of it with one`() {
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

    @Test func `Foreign bytes are copied`() {
        recycleOne(30_000)
        let bytes = [UInt8](repeating: 9, count: 25_000)
        let slice = bytes.withUnsafeBytes { chunks.slice(of: $0) }
        #expect(slice.bytes == bytes)
        #expect(slice.chunk.capacity == 30_000)
    }
}

extension Chunk {
    fileprivate func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }
}
