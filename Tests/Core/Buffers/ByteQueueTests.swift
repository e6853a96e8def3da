import Testing

@testable import NighCore

@Suite struct ByteQueueTests {
    @Test func adjacentSlicesAreMerged() {
        let whole = ByteSlice(Array(0..<100))
        var queue = ByteQueue()
        for start in stride(from: 0, to: 100, by: 10) { queue.append(whole[start..<start + 10]) }
        #expect(queue.sliceCount == 1 && queue.byteCount == 100)
        queue.append(ByteSlice([7]))
        #expect(queue.sliceCount == 2)
        #expect(queue.first == whole)
    }

    @Test func aSliceIsSplitWhereAWriteStopped() {
        var queue = ByteQueue()
        queue.append(ByteSlice([1, 2, 3, 4, 5]))
        queue.append(ByteSlice([6, 7]))
        queue.drop(2)
        #expect(queue.bytes == [3, 4, 5, 6, 7])
        #expect(queue.popFirst(atMost: 1)?.bytes == [3])
        #expect(queue.popFirst(atMost: 10)?.bytes == [4, 5], "one slice at most, of one chunk")
        #expect(queue.byteCount == 2)
        queue.drop(2)
        #expect(queue.isEmpty && queue.sliceCount == 0 && queue.popFirst() == nil)
    }

    @Test func emptySlicesAreNotQueued() {
        var queue = ByteQueue()
        queue.append(ByteSlice([UInt8]()))
        #expect(queue.isEmpty && queue.sliceCount == 0 && queue.first == nil)
    }

    @Test func drainedChunksAreReleased() {
        var queue = ByteQueue()
        weak var chunk: Chunk?
        do {
            let slice = ByteSlice([1, 2, 3])
            chunk = slice.chunk
            queue.append(slice)
        }
        queue.drop(2)
        #expect(chunk != nil)
        queue.drop(1)
        #expect(chunk == nil)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func aByteQueueBehavesLikeAnArrayOfBytes(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var source = Source()
        var queue = ByteQueue()
        var reference: [UInt8] = []
        for step in 0..<2_000 {
            switch Int.random(in: 0..<7, using: &random) {
            case 0, 1, 2:
                let slice = source.next(Int.random(in: 0...20, using: &random))
                queue.append(slice)
                reference += slice.bytes
            case 3:
                var other = ByteQueue()
                for _ in 0..<3 { other.append(source.next(Int.random(in: 0...9, using: &random))) }
                reference += other.bytes
                queue.append(contentsOf: &other)
                #expect(other.isEmpty && other.sliceCount == 0)
            case 4:
                let taken = queue.popFirst()
                #expect((taken == nil) == reference.isEmpty)
                #expect(taken?.bytes ?? [] == Array(reference.prefix(taken?.count ?? 0)))
                reference.removeFirst(taken?.count ?? 0)
            case 5:
                let most = Int.random(in: 0...30, using: &random)
                let taken = queue.popFirst(atMost: most)?.bytes ?? []
                #expect(taken.count <= most && taken == Array(reference.prefix(taken.count)))
                reference.removeFirst(taken.count)
            default:
                let count = Int.random(in: 0...reference.count, using: &random)
                queue.drop(count)
                reference.removeFirst(count)
            }
            #expect(queue.byteCount == reference.count && queue.isEmpty == reference.isEmpty)
            #expect(queue.bytes == reference)
            let slices = (0..<queue.sliceCount).map { queue[$0] }
            #expect(!slices.contains { $0.isEmpty })
            #expect(slices.first == queue.first)
            if step.isMultiple(of: 500) {
                queue.removeAll()
                reference.removeAll()
            }
        }
    }

    /// Creates slices of consecutive byte values, mostly side by side in a chunk.
    private struct Source {
        var chunk = Chunk(capacity: 200)
        var counter: UInt8 = 0

        mutating func next(_ count: Int) -> ByteSlice {
            if chunk.room < count { chunk = Chunk(capacity: 200) }
            let start = chunk.filled
            let bytes = (0..<count).map { counter &+ UInt8($0) }
            counter &+= UInt8(count)
            bytes.withUnsafeBytes { chunk.append($0) }
            return chunk.slice(from: start)
        }
    }
}
