import Testing

@testable import NighCore

@Suite struct ByteSliceTests {
    @Test func `A slice holds the bytes it was made of`() {
        #expect(ByteSlice([1, 2, 3]).bytes == [1, 2, 3])
        #expect(ByteSlice([UInt8]()).bytes == [])
        #expect(ByteSlice([UInt8]()).isEmpty)
        #expect(ByteSlice("héllo".utf8).bytes == Array("héllo".utf8))
        #expect(ByteSlice([9, 8, 7].lazy.map { $0 + 1 }).bytes == [10, 9, 8], "also of what lies nowhere")
    }

    @Test func `Parts share the chunk and copies do not`() {
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

    @Test func `Slices with equal bytes are equal`() {
        #expect(ByteSlice([1, 2]) == ByteSlice([0, 1, 2])[1..<3])
        #expect(ByteSlice([1, 2]) != ByteSlice([1, 3]))
        #expect(ByteSlice([1, 2]) != ByteSlice([1, 2, 3]))
    }

    @Test func `Only adjacent slices of one chunk are joined`() {
        let whole = ByteSlice(Array(0..<10))
        #expect(whole[0..<3].joined(with: whole[3..<7])?.bytes == [0, 1, 2, 3, 4, 5, 6])
        #expect(whole[0..<3].joined(with: whole[4..<7]) == nil, "a gap")
        #expect(whole[3..<7].joined(with: whole[0..<3]) == nil, "the wrong way round")
        #expect(whole[0..<3].joined(with: ByteSlice([3, 4])) == nil, "another chunk")
    }

    @Test func `A thrown error keeps its type`() {
        struct Fault: Error, Equatable {}
        #expect(throws: Fault()) { try ByteSlice([1]).withUnsafeBytes { _ throws(Fault) in throw Fault() } }
    }
}

@Suite struct ByteQueueTests {
    @Test func `Adjacent slices are merged`() {
        let whole = ByteSlice(Array(0..<100))
        var queue = ByteQueue()
        for start in stride(from: 0, to: 100, by: 10) { queue.append(whole[start..<start + 10]) }
        #expect(queue.sliceCount == 1 && queue.byteCount == 100)
        queue.append(ByteSlice([7]))
        #expect(queue.sliceCount == 2)
        #expect(queue.first == whole)
    }

    @Test func `A slice is split where a write stopped`() {
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

    @Test func `Drained chunks are released`() {
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
    func `A byte queue behaves like an array of bytes`(seed: UInt64) {
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

@Suite struct RingTests {
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `A ring behaves like an array`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var ring = Ring<Int>()
        var reference: [Int] = []
        // Seeds differ in how often they take, so that some rings stay small and wrap around, and some grow large.
        let taking = Int(seed % 4) + 1
        for step in 0..<3_000 {
            switch Int.random(in: 0..<4 + 2 * taking, using: &random) {
            case 0, 1:
                ring.append(step)
                reference.append(step)
            case 2:
                ring.prepend(step)
                reference.insert(step, at: 0)
            case 3:
                guard let index = reference.indices.randomElement(using: &random) else { continue }
                ring[index] = -step
                reference[index] = -step
            case let other where other.isMultiple(of: 2):
                #expect(ring.popFirst() == (reference.isEmpty ? nil : reference.removeFirst()))
            default:
                #expect(ring.popLast() == reference.popLast())
            }
            #expect(ring.count == reference.count && ring.isEmpty == reference.isEmpty)
            #expect(ring.first == reference.first)
            if step.isMultiple(of: 50) { #expect((0..<ring.count).map { ring[$0] } == reference) }
        }
        ring.removeAll()
        #expect(ring.isEmpty && ring.popFirst() == nil && ring.popLast() == nil && ring.first == nil)
    }

    @Test func `Items that leave the ring are released`() {
        final class Witness {}
        var ring = Ring<Witness>()
        weak var front: Witness?
        weak var back: Witness?
        do {
            let witnesses = [Witness(), Witness()]
            front = witnesses[0]
            back = witnesses[1]
            witnesses.forEach { ring.append($0) }
        }
        ring.popFirst()
        #expect(front == nil && back != nil)
        ring.popLast()
        #expect(back == nil)
    }

    @Test func `A copy keeps its own content`() {
        var ring = Ring<Int>()
        for number in 0..<20 { ring.append(number) }
        var copy = ring
        copy.popFirst()
        copy.append(99)
        #expect(ring.first == 0 && ring.count == 20 && ring[19] == 19)
        #expect(copy.first == 1 && copy.count == 20 && copy[19] == 99)
    }
}
