/// The chunks in which lanes encode their messages: a small one for a lane that was empty, and large ones behind it.
///
/// So a peer that now and then gets a small message costs little memory, however many such peers there are, and a lane
/// that is never empty is written in few parts. Loop only.
struct LaneChunks {
    private var small: ChunkPool
    private var large: ChunkPool

    /// Creates a pool that keeps at most `keepAtMost` chunks of each size.
    init(smallSize: Int, largeSize: Int, keepAtMost: Int) {
        small = ChunkPool(chunkSize: smallSize, keepAtMost: keepAtMost)
        large = ChunkPool(chunkSize: largeSize, keepAtMost: keepAtMost)
    }

    /// Returns an empty chunk with room for `needed` bytes, for a lane that was empty (`isFirst`) or is not.
    mutating func take(withRoom needed: Int, isFirst: Bool) -> Chunk {
        isFirst && needed <= small.chunkSize ? small.take() : large.take(withRoom: needed)
    }

    /// Returns a chunk, to which the caller must not write afterwards. See `ChunkPool.recycle`.
    mutating func recycle(_ chunk: consuming Chunk) {
        if chunk.capacity == small.chunkSize { small.recycle(chunk) } else { large.recycle(chunk) }
    }
}
