import Testing

@testable import NighCore

@Suite struct ChunkTests {
    /// The memory behind a chunk belongs to something else, so an attempt to write there must stop the program.
    @Test func claimingMoreThanTheCapacityStopsTheProgram() async {
        await #expect(processExitsWith: .failure) { _ = Chunk(capacity: 8).claim(9) }
        await #expect(processExitsWith: .failure) { _ = Chunk(capacity: 8).claim(-1) }
    }

    @Test func aChunkFillsFromItsFront() {
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

    @Test func aChunkWithoutReadersIsReused() {
        var pool = ChunkPool(chunkSize: 16, keepAtMost: 1)
        let place = recycleOne(in: &pool)
        let again = pool.take()
        #expect(ObjectIdentifier(again) == place)
        #expect(again.filled == 0)
    }

    @Test func aChunkWithAReaderIsNotReused() {
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

    @Test func aPoolKeepsNoMoreThanItsLimitAndNoOtherSizes() {
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

    /// The position of the first byte of `chunk` in its page.
    private func offset(_ chunk: Chunk) -> Int { Int(bitPattern: chunk.base) % 4_096 }

    @Test("A large block that is read into begins with a page; one that is written lies behind the headers")
    func placement() {
        for size in [64 << 10, (64 << 10) + 1, 1 << 20] {
            #expect(offset(Chunk(capacity: size, .forReading)) == 0)
            #expect(offset(Chunk(capacity: size)) == 1_024)
            var pool = ChunkPool(chunkSize: size, keepAtMost: 1, .forReading)
            #expect(offset(pool.take()) == 0)
        }
    }

    @Test(
        "A block has all its bytes, wherever it lies",
        arguments: [0, 1, (64 << 10) - 1, 64 << 10, 300_000], [Chunk.Placement.forReading, .forMessages])
    func bytes(_ size: Int, _ placement: Chunk.Placement) {
        let chunk = Chunk(capacity: size, placement)
        let content = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        content.withUnsafeBytes { chunk.append($0) }
        #expect(chunk.room == 0)
        #expect(chunk.slice(from: 0).bytes == content)
    }

    private func recycleOne(in pool: inout ChunkPool) -> ObjectIdentifier {
        let chunk = pool.take()
        chunk.append([1, 2, 3])
        let place = ObjectIdentifier(chunk)
        pool.recycle(consume chunk)
        return place
    }
}

extension Chunk {
    fileprivate func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }
}
