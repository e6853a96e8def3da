/// A block of raw memory that is filled from its front and shared by reference.
///
/// Who makes a chunk owns its unfilled end and is the only one to append to it. Everybody else holds `ByteSlice`s of
/// the filled part, which never changes while such a slice lives.
///
/// `@unchecked Sendable`: the filled part is read-only as long as a second reference exists (`rewindIfUnshared` is
/// the one way back, and it checks), and `filled` is read and written by the owner alone.
public final class Chunk: @unchecked Sendable {
    /// The first byte of the block.
    public let base: UnsafeMutableRawPointer
    /// The size of the block in bytes.
    public let capacity: Int
    /// How many bytes from the front are in use; for the owner only, which is why nobody checks at run time whether two look
    /// at it at once.
    @exclusivity(unchecked) public private(set) var filled = 0

    /// A block of `capacity` bytes, uninitialized, freed with its last reference.
    public init(capacity: Int) {
        self.capacity = capacity
        base = .allocate(byteCount: max(capacity, 1), alignment: 16)
    }

    deinit { base.deallocate() }

    /// How many bytes still fit.
    @inlinable
    public var room: Int { capacity &- filled }

    /// Takes the next `count` bytes into use and returns where they are, for the owner to write at once.
    public func claim(_ count: Int) -> UnsafeMutableRawPointer {
        precondition(count >= 0 && count <= room, "a chunk was claimed past its end")
        let start = base + filled
        filled &+= count
        return start
    }

    /// Copies `bytes` to the end of the filled part. They must fit in `room`.
    public func append(_ bytes: UnsafeRawBufferPointer) {
        let destination = claim(bytes.count)
        if let source = bytes.baseAddress { destination.copyMemory(from: source, byteCount: bytes.count) }
    }

    /// The bytes of `chunk` that are not in use, for its owner to write to before it claims them. Takes no reference.
    @inline(never)
    package static func rest(of chunk: inout Chunk) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: chunk.base + chunk.filled, count: chunk.room)
    }

    /// Takes the next `count` bytes of `chunk` into use, which its owner has written already, as a slice.
    @inline(never)
    package static func claim(_ count: Int, of chunk: inout Chunk) -> ByteSlice {
        let start = chunk.filled
        _ = chunk.claim(count)
        return chunk.slice(from: start)
    }

    /// What is filled from `start` to the end, as a slice that keeps this chunk.
    public func slice(from start: Int) -> ByteSlice { ByteSlice(chunk: self, start: start, end: filled) }

    /// Forgets the content if nobody else refers to `chunk`, so that its owner can fill it from the front; says whether.
    @inline(__always)
    package static func rewindIfUnshared(_ chunk: inout Chunk) -> Bool {
        guard isKnownUniquelyReferenced(&chunk) else { return false }
        chunk.filled = 0
        return true
    }

    /// Forgets the content so that the block can be filled anew. Only for a chunk nobody else refers to: ask
    /// `isKnownUniquelyReferenced` first, as `ChunkPool.recycle` does.
    func rewind() { filled = 0 }
}

/// Chunks of one size, kept for reuse by one loop.
///
/// Not thread-safe: each owner (a session, a transport) keeps its own. A chunk that somebody still reads is kept aside
/// and handed out again only when its last reader has let go.
public struct ChunkPool {
    /// The size of the chunks this pool hands out.
    public let chunkSize: Int
    private let keepAtMost: Int
    /// The one given back last at the end.
    private var kept = Ring<Chunk>()

    /// How many kept chunks are looked at for one that nobody reads any more, before a new one is made.
    private static let looks = 4

    /// A pool that keeps at most `keepAtMost` chunks of `chunkSize` bytes.
    public init(chunkSize: Int, keepAtMost: Int) {
        self.chunkSize = chunkSize
        self.keepAtMost = keepAtMost
    }

    /// An empty chunk, reused if there is one: the one given back last, whose memory is still near, else one of those
    /// that have waited longest.
    public mutating func take() -> Chunk {
        if isFree(kept.count - 1), let chunk = kept.popLast() { return emptied(chunk) }
        for _ in 0..<min(Self.looks, kept.count) {
            let isFree = isFree(0)
            guard let chunk = kept.popFirst() else { break }
            if isFree { return emptied(chunk) }
            kept.append(chunk)
        }
        return Chunk(capacity: chunkSize)
    }

    private mutating func isFree(_ index: Int) -> Bool {
        guard index >= 0, index < kept.count else { return false }
        var isFree = false
        kept.update(index) { isFree = isKnownUniquelyReferenced(&$0) }
        return isFree
    }

    private func emptied(_ chunk: Chunk) -> Chunk {
        chunk.rewind()
        return chunk
    }

    /// Gives a chunk back. The caller must not write to it afterwards. A chunk that was given back before and is still
    /// kept is not kept twice: it would never be without a second reference again.
    public mutating func recycle(_ chunk: consuming Chunk) {
        guard chunk.capacity == chunkSize, kept.count < keepAtMost else { return }
        for index in 0..<kept.count where kept[index] === chunk { return }
        kept.append(chunk)
    }
}
