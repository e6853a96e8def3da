/// A block of raw memory that is filled from its front and shared by reference.
///
/// The code that creates a chunk owns its unfilled end, and nobody else may append to it. Everybody else holds
/// `ByteSlice`s of the filled part, which does not change while such a slice exists.
///
/// `@unchecked Sendable`: the filled part is read-only while a second reference exists (`rewindIfUnshared` checks that;
/// callers of `rewind` must make sure of it), and only the owner reads and writes `filled`.
public final class Chunk: @unchecked Sendable {
    /// The first byte of the block.
    public let base: UnsafeMutableRawPointer
    /// The size of the block in bytes.
    public let capacity: Int
    /// The number of bytes in use, counted from the front. Only the owner may read it, so Swift need not check
    /// for overlapping access at run time.
    @exclusivity(unchecked) public private(set) var filled = 0

    /// Creates a block of `capacity` uninitialized bytes. The block is freed with its last reference.
    public init(capacity: Int) {
        self.capacity = capacity
        base = Placement.forMessages.allocate(capacity)
    }

    /// Creates a block that lies in its pages as `placement` says.
    init(capacity: Int, _ placement: Placement) {
        self.capacity = capacity
        base = placement.allocate(capacity)
    }

    deinit { Placement.block(of: base, capacity).deallocate() }

    /// Where the first byte of a large block lies in its page of memory.
    ///
    /// Processors that copy by one instruction (`rep movsb`) take five times as long if the destination lies up to 15
    /// bytes behind the source, counted within their pages. In a burst of bytes through a socket, the kernel's own
    /// memory begins with a page, and the bytes of a large message lie a few bytes behind that, after the headers. So
    /// blocks that are read into begin with a page, and the others a distance behind it that no headers reach.
    package enum Placement: Int, Sendable {
        /// For blocks that the kernel copies received bytes to.
        case forReading = 0
        /// For blocks whose bytes are written, and for those to which received messages are copied.
        case forMessages = 1_024

        private static let pageSize = 4_096
        /// Smaller blocks are placed as the allocator likes. They gain less, and would need a page more.
        private static let leastPlaced = 64 << 10

        fileprivate func allocate(_ capacity: Int) -> UnsafeMutableRawPointer {
            guard capacity >= Self.leastPlaced else {
                return .allocate(byteCount: max(capacity, 1), alignment: 16)
            }
            return .allocate(byteCount: rawValue + capacity, alignment: Self.pageSize) + rawValue
        }

        /// Returns the allocation in which a block of `capacity` bytes begins at `base`.
        fileprivate static func block(
            of base: UnsafeMutableRawPointer, _ capacity: Int
        ) -> UnsafeMutableRawPointer {
            capacity >= leastPlaced ? base - Int(bitPattern: base) % pageSize : base
        }
    }

    /// The number of bytes that still fit.
    @inlinable
    public var room: Int { capacity &- filled }

    /// Marks the next `count` bytes as used and returns their address. The owner must write them at once.
    public func claim(_ count: Int) -> UnsafeMutableRawPointer {
        precondition(count >= 0 && count <= room, "a chunk was claimed past its end")
        let start = base + filled
        filled &+= count
        return start
    }

    /// Copies `bytes` to the end of the filled part. They must fit into `room`.
    public func append(_ bytes: UnsafeRawBufferPointer) {
        let destination = claim(bytes.count)
        if let source = bytes.baseAddress { destination.copyMemory(from: source, byteCount: bytes.count) }
    }

    /// Returns the unused bytes of `chunk`. The owner writes to them before it claims them. Takes no reference.
    @inline(never)
    package static func unfilledBytes(of chunk: inout Chunk) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: chunk.base + chunk.filled, count: chunk.room)
    }

    /// Marks the next `count` bytes of `chunk`, which the owner has already written,
    /// as used, and returns them as a slice.
    @inline(never)
    package static func claim(_ count: Int, of chunk: inout Chunk) -> ByteSlice {
        let start = chunk.filled
        _ = chunk.claim(count)
        return chunk.slice(from: start)
    }

    /// Returns the filled bytes from `start` on, as a slice that keeps this chunk alive.
    public func slice(from start: Int) -> ByteSlice { ByteSlice(chunk: self, start: start, end: filled) }

    /// Empties `chunk` if nobody else has a reference to it, so that its owner can
    /// fill it again. Returns whether it did.
    @inline(__always)
    package static func rewindIfUnshared(_ chunk: inout Chunk) -> Bool {
        guard isKnownUniquelyReferenced(&chunk) else { return false }
        chunk.filled = 0
        return true
    }

    /// Empties the chunk so that it can be filled again. Call this only if nobody else can read the chunk:
    /// `ChunkPool.take` checks `isKnownUniquelyReferenced` first.
    func rewind() { filled = 0 }
}

/// Chunks of one size that one owner keeps for reuse.
///
/// Not thread-safe: each owner (a session, a transport) has its own pool. A chunk that somebody still reads stays in
/// the pool, and is handed out again only after its last reader has released it.
public struct ChunkPool {
    /// The size of the chunks that this pool hands out.
    public let chunkSize: Int
    private let keepAtMost: Int
    private let placement: Chunk.Placement
    /// Kept chunks, the most recently returned one at the end.
    private var kept = Ring<Chunk>()

    /// How many kept chunks `take` examines for one that nobody reads any more, before it allocates a new one.
    private static let chunksExamined = 4

    /// Creates a pool that keeps at most `keepAtMost` chunks of `chunkSize` bytes.
    public init(chunkSize: Int, keepAtMost: Int) {
        self.init(chunkSize: chunkSize, keepAtMost: keepAtMost, .forMessages)
    }

    /// Creates a pool of chunks that lie in their pages as `placement` says.
    package init(chunkSize: Int, keepAtMost: Int, _ placement: Chunk.Placement) {
        self.chunkSize = chunkSize
        self.keepAtMost = keepAtMost
        self.placement = placement
    }

    /// Returns an empty chunk, reused if possible.
    ///
    /// Prefers the most recently returned chunk, because its memory is probably still in the processor's cache. If that
    /// is in use, takes one of those that have waited longest.
    public mutating func take() -> Chunk {
        if isFree(kept.count - 1), let chunk = kept.popLast() { return emptied(chunk) }
        for _ in 0..<min(Self.chunksExamined, kept.count) {
            let isFree = isFree(0)
            guard let chunk = kept.popFirst() else { break }
            if isFree { return emptied(chunk) }
            kept.append(chunk)
        }
        return Chunk(capacity: chunkSize, placement)
    }

    /// Returns an empty chunk with room for `needed` bytes: one of the pool's, or a larger one.
    mutating func take(withRoom needed: Int) -> Chunk {
        needed <= chunkSize ? take() : Chunk(capacity: needed)
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

    /// Returns a chunk to the pool. The caller must not write to it afterwards.
    ///
    /// A chunk that is still in the pool is not added a second time: the second
    /// reference would make it look in use forever.
    public mutating func recycle(_ chunk: consuming Chunk) {
        guard chunk.capacity == chunkSize, kept.count < keepAtMost else { return }
        for index in 0..<kept.count where kept[index] === chunk { return }
        kept.append(chunk)
    }
}
