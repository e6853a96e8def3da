import Testing

@testable import NighCore

@Suite struct ByteSliceTests {
    @Test func aSliceHoldsTheBytesItWasMadeOf() {
        #expect(ByteSlice([1, 2, 3]).bytes == [1, 2, 3])
        #expect(ByteSlice([UInt8]()).bytes == [])
        #expect(ByteSlice([UInt8]()).isEmpty)
        #expect(ByteSlice("héllo".utf8).bytes == Array("héllo".utf8))
        #expect(ByteSlice([9, 8, 7].lazy.map { $0 + 1 }).bytes == [10, 9, 8], "also of what lies nowhere")
    }

    @Test func partsShareTheChunkAndCopiesDoNot() {
        let whole = ByteSlice(Array(0..<10))
        let part = whole[2..<6]
        #expect(part.bytes == [2, 3, 4, 5])
        #expect(part[1..<3].bytes == [3, 4], "ranges count from the part's own start")
        #expect(part[4..<4].isEmpty)
        #expect(part.chunk === whole.chunk)
        let copy = part.copy()
        #expect(copy == part && copy.chunk !== whole.chunk)
        #expect(copy.chunk.capacity == 4, "a copy keeps no large chunk in memory")
    }

    @Test func slicesWithEqualBytesAreEqual() {
        #expect(ByteSlice([1, 2]) == ByteSlice([0, 1, 2])[1..<3])
        #expect(ByteSlice([1, 2]) != ByteSlice([1, 3]))
        #expect(ByteSlice([1, 2]) != ByteSlice([1, 2, 3]))
    }

    @Test func onlyAdjacentSlicesOfOneChunkAreJoined() {
        let whole = ByteSlice(Array(0..<10))
        #expect(whole[0..<3].joined(with: whole[3..<7])?.bytes == [0, 1, 2, 3, 4, 5, 6])
        #expect(whole[0..<3].joined(with: whole[4..<7]) == nil, "a gap")
        #expect(whole[3..<7].joined(with: whole[0..<3]) == nil, "the wrong way round")
        #expect(whole[0..<3].joined(with: ByteSlice([3, 4])) == nil, "another chunk")
    }

    @Test func aThrownErrorKeepsItsType() {
        struct Fault: Error, Equatable {}
        #expect(throws: Fault()) { try ByteSlice([1]).withUnsafeBytes { _ throws(Fault) in throw Fault() } }
    }
}

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
